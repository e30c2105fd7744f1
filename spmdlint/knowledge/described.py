"""What the kinds, sources and keys of a function's table mean. docs/configuration.md is made from it."""

from __future__ import annotations

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "map": "returns its function run once per device or row, with the axes of `axes` or `mesh` bound inside",
    "jit": "returns its function compiled",
    "transform": "returns a function that calls its function, and binds nothing",
    "apply": "calls its function at once",
    "collective": "communicates over `axes`",
    "mesh": "makes a mesh with `axes`",
    "spec": "makes a partition spec",
    "sharding": "puts a spec on a mesh",
    "constraint": "shards a value by a spec, inside traced code",
    "context": "sets its mesh for the code after it, or in its block",
    "currying": "is `functools.partial`",
    "identity": "is a decorator that changes nothing",
    "decorator": "returns the function or class that it decorates or, called without one, a decorator that does; it "
    "returns something else if the parameter `unless` is passed",
    "layer": "makes an object that communicates over `axes` when it is called, except if the parameter `unless` is "
    "true, or only if the parameter `when` is",
    "forward": "is a method that passes what follows its `parameters` to `method` of its object, or to what made that",
    "constructor": "is a method that makes an object of its class, or of the subclass that it is called on",
    "copy": "is a method that returns the same object with different fields",
    "record": "makes an object with its parameters as attributes",
    "dispatch": "returns a function that runs its first argument, or what is registered for it by `.register`",
}
"""By kind: what the function does."""

SOURCES: Mapping[str, str] = {
    "identity": "which process it is: its index or rank",
    "clock": "the time",
    "entropy": "a random number",
    "files": "the files that a process sees",
    "host": "the machine: its name, memory, load and processes",
    "signal": "a signal, which arrives at one process",
    "thread": "another thread of the process",
    "callback": "a function that the runtime calls at an unknown time",
    "completion": "what is ready first",
    "hash": "the addresses and hashes of objects",
}
"""By source: what the result depends on."""

FACETS: Mapping[str, str] = {
    "content": "its value",
    "copies": "its value, if `laid_out` names no axis: each device then gets a copy of one value",
    "order": "the order of its elements, except along a dimension that `laid_out` splits",
    "name": "its value, as the name by which processes find one another",
    "seed": "its value, as the seed of keys from which all processes draw the same numbers",
    "deal": "its value, as the seed of a shuffle of which each process takes a part",
    "records": "the order of its elements, if each process is given those of some numbers",
}
"""By facet: what of an argument must be the same on all processes."""

KEYS: Mapping[str, str] = {
    "parameters": "its parameters in order, those that are passed by keyword only after `*`; the other keys name "
    "parameters",
    "formerly": "the names of parameters in older versions, by their present names",
    "kind": "what it does; one of the kinds above",
    "function": "the parameter, or parameters, that it maps, wraps or calls",
    # axes, meshes and specs
    "axes": "the parameter that names axes: those that a map or a mesh binds, or a collective communicates over",
    "mesh": "the parameter that is a mesh, whose axes a map binds",
    "sizes": "the parameter that gives the sizes of a mesh's axes: a shape, or an array of devices",
    "ambient": "without a mesh it takes that of the context",
    "only": "the parameter that narrows the axes of the mesh to some of them",
    "specs": "the parameters that are partition specs over the axes of the mesh",
    "spans": "a map that runs over several devices",
    "by_hand": "a map that passes each process the rows of its own devices, so that other arrays are local",
    "ordered": "the order of several axes decides the result",
    "groups": "the parameter that splits the axis of a collective into groups",
    "permutation": "the parameter that says who sends to whom, in pairs",
    "sources": "`permutation` is the source of each destination, in order",
    "unbound": "if nothing binds its axes, it does nothing",
    # functions that are passed
    "leaves": "the parameter that is a pytree whose leaves are passed to the function",
    "runs": "its function runs unchanged, on each leaf or element, and is not traced (`apply`)",
    "keeps": "the transformed function's result has the structure of the function's result",
    "derives": "it takes derivatives of its function",
    "derived_by": "the method of its result that is passed functions which run where derivatives are taken",
    "refs": "its function is a kernel, which is passed references",
    "opaque": "which axes it binds is not known, so any may be bound inside",
    "manages": "it makes a context manager of its function, a generator: `as` binds what that yields",
    "callback": "the parameter that is a function which runs at an unknown time; what it stores is the source",
    # layers and methods
    "when": "the parameter that makes a layer communicate if it is true",
    "unless": "the parameter that makes a layer not communicate if it is true, or a decorator return something else",
    "called": "the parameters of the call of a layer, if `when` or `unless` is one of them",
    "off": "`when` or `unless` is false if nothing passes it, unless the program uses a method of `switched_by`",
    "switched_by": "the methods that change `when` or `unless` later",
    "method": "the method to which a `forward` passes its arguments",
    "drops": "the keywords that a `forward` does not pass on",
    "inserts": "the parameter of that method which a `forward` passes another value",
    "initializes": "while a `forward` runs, the library's layers do not communicate",
    "needs": "for a method: the modules of which a file has to import one for it to count",
    "given_to": "an object with a method that is passed one of these is of that class",
    # parallel calls and agreement
    "parallel": "every process must make this call",
    "compiled": "a call that a `jit` traces becomes part of its program",
    "checkpoint": "it saves or restores a checkpoint, together with the other processes",
    "since": "for a checkpoint: the release of its library from which the call is a parallel call",
    "until": "for a checkpoint: a name that only the releases have in which the call is no parallel call yet",
    "among": "the parameter that names the processes which take part; without it, all do",
    "label": "the parameter that is a name by which processes match their calls",
    "agreement": "its result is the same on every process, whatever its arguments are",
    "any_shape": "its arguments may differ in shape between processes",
    "fills": "for an agreement: the parameter that is the buffer for the result",
    "equates": "the two parameters for which it raises unless they are equal, on each process for itself",
    "rooted": "the parameter that counts on one process only; others may pass a value of another form",
    "gathers": "it gives all processes the values of each",
    # what must be the same on all processes
    "pure": "it only returns its result and changes none of its arguments, so the result must be used",
    "agree": "by parameter, the facets in which its arguments must agree between the processes, separated by spaces",
    "laid_out": "the parameter that says how an argument is laid out over devices; of a map, how its arguments are",
    # values that differ
    "source": "why its result differs between processes; one of the sources above",
    "attribute": "a source that is a value and not a function",
    "optional": "a source that returns None where it finds nothing",
    "at_most": "it is a source only with so many arguments at most; one that is None does not count",
    "seeded_by": "the function that makes it no source, if the program calls it",
    "seeds": "the other functions that it calls with its first argument, and which seed generators",
    "seeded_with": "the parameter of that function which does so, if it is not the first one",
    "set_by": "for an attribute, or for what needs it: the function that sets it, which differs if only some call that",
    "cappable": "a property of the machine that decides nothing once it is capped",
    "raised": "for an exception: the source outside the program that raises it",
    "reads": "it reads a file, which can fail",
    "once": "what one process is meant to do for all: start the `run` of a tracker, write a `file`, make a `folder`",
    "ends": "it ends the process, at once or soon",
    "seed": "the parameter that is a seed",
    # what passes through
    "passes": "what its result has in common with what it is given: `size` (the number of elements), `order`, "
    "`content`, `shape` (of arrays), `batches` (the sizes of the batches that an iterable gives); of a module, it "
    "counts for the functions that have no such key",
    "through": "the parameters through which that passes; without it, all arguments, or a method's object",
    "like": "for a module: the one whose functions of the same names pass on the same",
    "shaped_by": "the parameter that is the shape of the array which it makes",
    "selects": "it returns the elements that it finds, however many; the parameter that asks for a result with one for "
    "each, or empty",
    "counts": "it returns the number of elements of its argument, or of its object",
    # order and data
    "listing": "its results are in the order of a directory listing",
    "listed_by": "the part of each element, by its number, that orders a `listing` if the loop over it sorts that part",
    "completion": "its results are in the order of completion",
    "shuffles": "it shuffles its result, differently on every process, unless one of these parameters is passed",
    "splits": "for what `shuffles`: the sets that it divides the data into must be the same on all processes",
    "seed_of": "the parameter that makes the order of an object the same, if one of `shuffles` is passed that object",
    "asked": "it shuffles only if this parameter is true",
    "gives_strings": "it returns a list of strings",
    "stacks": "it puts a sequence into an array, element by element",
    "along": "the dimension along which it does so, if that is not the first and its parameter `axis` does not say",
    "composes": "it composes its arguments to a program, in their order",
    "gives_global": "it returns an array over the devices of a sharding",
    "local": "the parameter that is this process's own part of that array",
    "own_by": "it returns this process's part of a global array, if this parameter, a spec, names an axis",
    "per_device": "it returns arrays with one row per local device",
    "batches": "the parameter that is the number of rows in a batch, of which the last one may be short",
    "sampler": "the parameter that is an object which selects the records, perhaps endlessly",
    "rounds": "the parameter that says how often the data is repeated; without it, endlessly",
    "order_seed": "the parameter that is the seed of the order in which it returns something",
    "deal_seed": "the parameter that is the seed of a shuffle of all records, of which it then returns one part",
    "dealt": "the parameter that says which part; without it, the records are not split",
    "parts": "it returns all parts of some data, or what describes them, which may differ in size",
    "part": "the parameter that says which of them it returns or describes",
    "own": "the part is that of this process",
    "part_of": "the parameters that describe the part which it returns",
    "evened_by": "the parameter that makes all parts the same size",
    "uneven": "the values of that parameter, by the last parts of their names, that make the sizes differ",
}
"""By key: what it says of the function."""
