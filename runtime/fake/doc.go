// Package fake specifies what the containers of in-memory runtimes do, and what goes wrong
// with calls of these runtimes.
//
// A [Behavior] specifies a container: how long it runs, how it exits, whether it can be
// started, whether it ignores SIGTERM, what it prints, where it listens, and which resources
// it uses. A [Fault] specifies what goes wrong with one [Call]: it fails, hangs, is late, or
// its response is lost. Both have a text, for annotations, files and tests; a [Script] is a
// file of them.
//
// # Text
//
// The text of a Behavior consists of options, separated by commas or blanks, in any order.
// Durations have the syntax of [time.ParseDuration]; numbers may have units such as 250m and 64Mi.
// Texts with characters other than letters, digits and "-_./:%+*" are quoted as in Go.
//
//	run                          no effect: the container runs until it is stopped
//	start=2s, queue=2s           each start takes 2 s; is queued for 2 s
//	fail=CreateContainerError    it cannot be started, for this reason
//	fail="ErrImagePull: no"@5s   the same with a message, for 5 s since the first attempt
//	exit=1@5s                    exits with code 1 after 5 s; exit=1: immediately
//	oom@5s                       killed with reason OOMKilled after 5 s
//	reason=Error, message=text   the reason and the termination message of the exit
//	crashes=3                    only the first three instances exit
//	stop=2s, stopCode=4          exits 2 s after SIGTERM, and with code 4
//	ignoreTERM                   ignores SIGTERM
//	ready=2s                     ready 2 s after its start; neverReady: never
//	flap=1s                      alternately ready and not ready for 1 s
//	started=5s, unhealthy=1m     startup probes fail for 5 s; liveness probes fail after 1 min
//	liveness                     has a liveness probe that succeeds
//	evict@5s                     its pod is evicted 5 s after its start
//	version=2                    distinguishes images with equal behavior
//	log="hello %d"@5s;every=1s;times=3;stderr
//	                             prints the line after 5 s, and three times, to stderr
//	http=8080@5s;until=1m        serves HTTP on the port, and is ready from 5 s to 1 min
//	tcp=8080                     accepts connections on the port
//	memory=16Mi;512Mi@1m;repeat  uses memory that grows for a minute, repeatedly; cpu, disk
//	command="cat x";stdout=ok;stderr=no;code=1;takes=5s;fails=2;echo
//	                             the result of commands that begin with these arguments
//
// # Usage
//
// Each runtime implements a part of the options, and returns an error for the others where it
// parses a text or checks its configuration:
//
//	runtime/runtimetest          start to ignoreTERM, without message and stopCode; command and Exec
//	runtime/containers/containerstest   the same with message, log and Attach, without command, reason and crashes
//	runtime/cri/fakecri          start to ignoreTERM, and log to command; Exec and Forward
//	sim                          start, exit to unhealthy without message, reason, stopCode, neverReady and flap;
//	                             liveness, version
//	kube/fakenode                start to evict, without queue, message, stopCode, started, unhealthy and liveness;
//	                             log to command, Exec, Attach and Forward where kube/hollow serves its nodes
//
// The functions [Always], [Every], [Random] and others return the faults of calls; a [Rule] has
// the same as text.
//
// # Concurrency
//
// All types are values, which their runtimes do not modify. The functions that return faults
// are safe for concurrent use.
//
// # Guarantees and limits
//
// Parsing the text of a value returns an equal value, except for functions, and for the order of
// http and tcp. The probability of a fault depends on its seed and on the identity of the call
// only.
//
// # Differences from the kubelet
//
// The kubelet has fakes for each of its packages, and no text for them.
//
// # Testing
//
// The texts of behaviors and of scripts are fuzzed: what can be parsed is equal after it was
// formatted.
//
// # Stability
//
// Settled: a change that breaks a caller is announced a minor version before it.
package fake
