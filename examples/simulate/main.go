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
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/kubeparts/kubeparts/sim/virtualtime"
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
	ok := false
	err := virtualtime.Run(func(ctx context.Context) (err error) {
		ok, err = simulate(ctx, o, os.Stdout)
		return err
	})
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}
