"""What is told of a job: the report as data and as text, its sentences, and what may be printed."""
