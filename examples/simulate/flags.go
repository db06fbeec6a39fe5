package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/examples/internal/cli"
)

// options are what a person can choose.
type options struct {
	seed     uint64
	pods     int
	length   time.Duration
	calm     bool
	manifest string
	schedule string

	svg   string
	width int
	all   bool
}

const usage = `simulate runs a node in virtual time and shows what happened to its pods.

  simulate --seed 7                      what the seed draws: pods, exits, faults, an agent
                                         that is killed and started again
  simulate --seed 7 --calm               only pods, and what people do to them
  simulate --schedule FILE --seed 7      what a failed simulation has printed
  simulate --manifest FILE --for 10m     a pod of yours

Of a manifest's containers, those whose image has the name sim.test/does do what
its tag says, the others run until they are stopped:

  sim.test/does:run                    run until stopped
  sim.test/does:run_ready-5s           be ready after 5 s, if there is a readiness probe
  sim.test/does:run_stubborn           ignore TERM
  sim.test/does:run_stop-3s            take 3 s to stop
  sim.test/does:exit-3-20s             exit with code 3 after 20 s
  sim.test/does:exit-137-20s_oom       be killed for its memory after 20 s
  sim.test/does:run_start-8s           take 8 s to start

It exits with 1 if a law of package sim was broken.

Flags:
`

func parseFlags(args []string, stdout io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("simulate", flag.ContinueOnError)
	fs.Uint64Var(&o.seed, "seed", 1, "`number` that everything is drawn from")
	fs.IntVar(&o.pods, "pods", 0, "how many `pods` (0: as the seed says)")
	fs.DurationVar(&o.length, "for", 0, "how `long` things happen, in virtual time (0: as the seed says; with --manifest, 10m)")
	fs.BoolVar(&o.calm, "calm", false, "no faults, and an agent that lives on")
	fs.StringVar(&o.manifest, "manifest", "", "`file` with a pod, instead of what the seed draws")
	fs.StringVar(&o.schedule, "schedule", "", "`file` with a schedule, instead of what the seed draws")
	fs.StringVar(&o.svg, "svg", "", "`file` to write the timeline to as a picture")
	fs.IntVar(&o.width, "width", 120, "`columns` of the timeline")
	fs.BoolVar(&o.all, "all", false, "list everything that happened, not only the first lines")
	if err := cli.Parse(fs, args, usage, stdout); err != nil {
		return o, err
	}
	switch {
	case o.manifest != "" && o.schedule != "":
		return o, errors.New("--manifest and --schedule exclude each other")
	case o.pods < 0 || o.length < 0:
		return o, errors.New("--pods and --for are not negative")
	case o.manifest != "" && o.pods > 0:
		return o, errors.New("--pods is for what a seed draws; a manifest is one pod")
	}
	if o.manifest != "" && o.length == 0 {
		o.length = 10 * time.Minute
	}
	return o, nil
}

// read returns what a file given by a flag has in it.
func read(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(text), err // names the file
}
