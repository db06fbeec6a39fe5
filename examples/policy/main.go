// Policy is a research prototype: two ways to choose which pod is evicted, and two to
// choose which image goes, compared on nodes drawn from 100 seeds, in seconds:
//
//	go run ./examples/policy
//	go run ./examples/policy --seeds 1000 --svg policy.svg
//
// To try an idea of yours, add it to policies.go; it is a function of values. The
// nodes are those of memory.go and images.go, and what is counted is what they return.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/examples/internal/cli"
)

func main() {
	switch err := run(os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "policy:", err)
		os.Exit(2)
	}
}

const usage = `policy compares ways to choose which pod is evicted, and which image goes, on
nodes that are drawn from seeds: each of them lives through the same days.

  go run ./examples/policy --seeds 100 --svg policy.svg

Flags:
`

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("policy", flag.ContinueOnError)
	seeds := fs.Int("seeds", 100, "how many `nodes` of each kind")
	svg := fs.String("svg", "", "`file` to write the picture to")
	if err := cli.Parse(fs, args, usage, out); err != nil {
		return err
	}
	if *seeds < 1 {
		return errors.New("--seeds is 1 or more")
	}
	studies, err := compare(*seeds)
	if err != nil {
		return err
	}
	for _, s := range studies {
		s.table(out)
	}
	if *svg == "" {
		return nil
	}
	f, err := os.Create(*svg)
	if err != nil {
		return err
	}
	draw(f, studies)
	fmt.Fprintln(out, "the picture is in", *svg)
	return f.Close()
}

// compare lets every policy live through the same nodes.
func compare(seeds int) ([]study, error) {
	evictions := study{title: "evictions: half a day of a node that runs out of memory", measures: memoryMeasures}
	for _, r := range rankings {
		runs, err := lives(seeds, func(seed uint64) ([]float64, error) { return liveMemory(seed, r.order), nil })
		if err != nil {
			return nil, err
		}
		evictions.outcomes = append(evictions.outcomes, outcomes{r.name, runs})
	}
	images := study{title: "images: four days of a node whose disk is full of them", measures: imageMeasures}
	for _, c := range collectors {
		runs, err := lives(seeds, func(seed uint64) ([]float64, error) { return liveImages(seed, c.policy, c.rank) })
		if err != nil {
			return nil, err
		}
		images.outcomes = append(images.outcomes, outcomes{c.name, runs})
	}
	return []study{evictions, images}, nil
}

// lives runs one node of each seed, as many at a time as there are processors.
func lives(seeds int, live func(seed uint64) ([]float64, error)) ([][]float64, error) {
	runs := make([][]float64, seeds)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range runs {
		group.Go(func() (err error) {
			runs[seed], err = live(uint64(seed))
			return err
		})
	}
	return runs, group.Wait()
}
