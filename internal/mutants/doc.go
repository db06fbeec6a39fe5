// Package mutants checks that the simulation and the unit tests find bugs: a mutant is a plausible
// bug, and a test plants it and requires that it is found.
//
// # Behavior
//
// Each file in testdata is a bug that the simulation must find. It specifies the text of a file that is
// replaced, the invariants of package sim of which at least one must be violated, and why it is a bug:
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
// Each file in testdata/unit has the bugs of one package that the tests of this package must find:
//
//	package: pleg
//
//	=== name-of-the-bug
//	file: record.go
//	test: TestX, TestY
//	why: An event that is dropped leaves a pod as it was.
//	--- find
//	the text, which must occur exactly once in the file
//	--- replace
//	the text in its place
//
// One of the tests must fail, where all tests of the package are run without the line "test". The
// same tests must pass without the mutant. A mutant that does not compile, and one whose text does
// not occur exactly once, is an error. Tests that exceed their time have found it only if its table
// has "hangs: yes".
//
// Mutants are applied with the -overlay flag of the go command; the code itself does not
// change.
//
// # Usage
//
//	go test ./internal/mutants                 # does each mutant match the code?
//	go test -tags mutants ./internal/mutants   # does the simulation catch each?
//	go test -tags mutants -run Simulation/NAME ./internal/mutants
//	go test -tags mutants -run UnitTests -v ./internal/mutants             # do the unit tests? A table of times
//	go test -tags mutants -run UnitTests/in/volume/csi/NAME ./internal/mutants
//
// If KUBEPARTS_MUTANTS_CHANGED is a list of files or directories of the repository, separated by
// white space, only the mutants of these packages are planted, of both kinds: those of a package
// that is in the list, or of which a file is, including its tests, testdata and table of mutants.
// If it is empty or not set, all are planted:
//
//	KUBEPARTS_MUTANTS_CHANGED="$(git diff --name-only origin/main)" \
//	    go test -tags mutants -run 'Simulation|UnitTests' ./internal/mutants
//
// Some mutants are also recorded on a containerd: the recording is replayed and shrunk to
// a test, which must fail with the mutant and pass without it (docs/recording.md):
//
//	go test -tags mutants -run IntegrationMutants -v -timeout 60m ./internal/mutants
//	go test -tags mutants -run IntegrationMutants ./internal/mutants -only exit-code-made-up
//
// # Concurrency
//
// Mutants are values. The tests build and run as many packages at a time as there are processors
// (the flag -parallel), and the mutants of one package in turn.
//
// # Guarantees and limits
//
// A caught mutant shows that the simulation detects one bug of its kind, not all of
// them. A mutant that is not caught is a gap in the invariants or schedules of package
// sim, or in the tests of the package, which must be closed there.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart.
//
// # Testing
//
// The package is a test. Without the tag it takes a second or two.
package mutants
