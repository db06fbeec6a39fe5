// Package mutants checks that the simulation finds bugs: each file in testdata is a
// plausible bug, and a test plants it and requires that the simulation finds it.
//
// # Behavior
//
// A mutant specifies the text of a file that is replaced, the invariants of package
// sim of which at least one must be violated, and why it is a bug:
//
//	file: pleg/record.go
//	in: sim/simcri
//	invariant: an-invariant, or-another
//	why: An event that is dropped leaves a pod as it was.
//	--- find
//	the text, which must occur exactly once in the file
//	--- replace
//	the text in its place
//
// The seeds are those of package sim with its default Machine, or of sim/simcri if "in"
// is that package. With "in: agent", "test" instead of "invariant" is a unit test of
// package agent that must fail, for bugs of the wiring that the invariants cannot
// observe.
//
// Mutants are applied with the -overlay flag of the go command; the code itself does not
// change.
//
// # Usage
//
//	go test ./internal/mutants                 # does each mutant match the code?
//	go test -tags mutants ./internal/mutants   # does the simulation catch each?
//	go test -tags mutants -run Simulation/NAME ./internal/mutants
//
// Some mutants are also recorded on a containerd: the recording is replayed and shrunk to a test, which must fail with the
// mutant and pass without it (docs/recording.md):
//
//	go test -tags mutants -run IntegrationMutants -v -timeout 60m ./internal/mutants
//	go test -tags mutants -run IntegrationMutants ./internal/mutants -only exit-code-made-up
//
// # Concurrency
//
// Mutants are values. The tests build and run one at a time, because the simulation
// uses all processors.
//
// # Guarantees and limits
//
// A caught mutant shows that the simulation detects one bug of its kind, not all of
// them. A mutant that is not caught is a gap in the invariants or schedules of package
// sim, which must be closed there.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// The package is a test. Without the tag it takes a second or two.
package mutants
