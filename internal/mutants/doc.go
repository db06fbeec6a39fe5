// Package mutants shows that the simulation finds bugs: each file in testdata
// is one that somebody could have made, and a test plants it and demands that
// the simulation finds it.
//
// # What it decides
//
// A mutant says which text of which file is replaced by which, the laws of
// package sim that must catch it (one of them is enough), and why it is a bug
// worth finding:
//
//	file: pleg/record.go
//	in: sim/simcri
//	law: a-law, or-another
//	why: An event that is dropped leaves a pod as it was.
//	--- find
//	the text, which the file has exactly once
//	--- replace
//	the text in its place
//
// The simulation runs the seeds of package sim, over its memory, unless "in" names
// sim/simcri, which is the engine over a CRI runtime. With "in: agent", "test" in
// place of "law" names a unit test of package agent that must fail: for bugs of the
// wiring that change nothing that the invariants observe.
//
// The code that is shipped knows nothing of it: mutants are applied by the
// -overlay of the go command.
//
// # Usage
//
//	go test ./internal/mutants                 # do they still fit the code?
//	go test -tags mutants ./internal/mutants   # does the simulation catch each?
//	go test -tags mutants -run /NAME ./internal/mutants
//
// # Concurrency
//
// Mutants are values. The tests build and run one at a time: the simulation
// takes all the cores that there are.
//
// # Guarantees and limits
//
// A mutant that is caught shows that one bug of its kind would be; it does not
// show that every one would. One that is not caught is a gap in the laws or in
// the schedules of package sim, and is mended there.
//
// # Differences from the kubelet
//
// It has nothing of the kind.
//
// # Testing
//
// The package is a test. Without the tag it takes a second or two.
package mutants
