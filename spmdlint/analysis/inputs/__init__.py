"""What parallel calls, programs and keys are given, and must be given alike."""
