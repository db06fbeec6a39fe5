// Simulate runs a node in virtual time with random pods and faults (package sim), and shows
// what happened to its pods as a chart, or as a picture:
//
//	go run ./examples/simulate --seed 7
//	go run ./examples/simulate --seed 7 --calm --svg node.svg
//	go run ./examples/simulate --seed 7 --schedule FILE # a schedule that a failed test printed
//
// An hour takes milliseconds, and the same seed gives the same hour. The exit code is 1 if an
// invariant of package sim was violated.
package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
)

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that pods, faults and times are drawn from")
	flag.IntVar(&o.pods, "pods", 0, "`number` of pods; 0: drawn from the seed")
	flag.DurationVar(&o.length, "for", 0, "virtual `time` in which things happen; 0: drawn from the seed")
	flag.BoolVar(&o.calm, "calm", false, "no faults and no restarts of the agent")
	flag.StringVar(&o.schedule, "schedule", "", "`file` with a schedule, instead of one drawn from the seed")
	flag.StringVar(&o.svg, "svg", "", "`file` to write a picture to")
	flag.BoolVar(&o.list, "list", false, "list all that happened")
	flag.Parse()
	inVirtualTime(func(t *testing.T) int {
		ok, err := simulate(t.Context(), o, os.Stdout)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "simulate:", err)
			return 2
		case !ok:
			return 1
		}
		return 0
	})
}

// inVirtualTime runs f in a synctest bubble and exits with the code that it returns. A
// bubble requires a *testing.T, which testing.Main provides in any program.
func inVirtualTime(f func(t *testing.T) (code int)) {
	os.Args = os.Args[:1] // testing.Main parses the flags of a test
	testing.Init()
	testing.Main(
		func(pattern, name string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "simulate", F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { os.Exit(f(t)) }) // before package testing prints a result
		}}}, nil, nil)
}
