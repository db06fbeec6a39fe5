// Study compares policies over many seeds (package sim/study), on this machine or as the shares of
// an Indexed Job of a cluster:
//
//	go run ./examples/study --seeds 20 --out results
//	go run ./examples/study --study backoff --seeds 20
//
// writes tables (CSV) and charts (SVG) to the directory results, and the summary to standard output.
//
//	kubectl apply -k deploy/study
//	kubectl wait --for=condition=Complete job/study --timeout=1h
//	go run ./examples/study --merge --configmaps study --kubeconfig ~/.kube/config --out results
//
// runs the shares as pods and merges their results. A share is chosen by --share or by
// JOB_COMPLETION_INDEX, which an Indexed Job sets, and written to a directory (--parts), to a
// ConfigMap (--configmaps) or to standard output; --merge reads them from the same places. The
// results are equal for every number of shares, byte for byte.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	var o options
	o.define(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := o.completionIndex(os.Getenv("JOB_COMPLETION_INDEX"))
	if err == nil {
		err = run(ctx, o, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
}

type options struct {
	workload
	study  string
	seeds  int
	first  uint64
	share  int // negative: all of them
	shares int
	merge  bool
	out    string
	store
}

func (o *options) define(f *flag.FlagSet) {
	f.StringVar(&o.study, "study", "placement", "`name` of the study: placement (pods on a cluster) or backoff (a node with faults)")
	f.IntVar(&o.seeds, "seeds", 50, "`number` of seeds with which each policy is run")
	f.Uint64Var(&o.first, "first", 1, "first `seed`")
	f.IntVar(&o.nodes, "nodes", 4, "`number` of nodes of the study placement")
	f.IntVar(&o.pods, "pods", 200, "`number` of pods of the study placement")
	f.DurationVar(&o.length, "for", defaultLength, "simulated `time` of the study placement")
	f.IntVar(&o.shares, "shares", 1, "`number` of shares, the completions of an Indexed Job")
	f.IntVar(&o.share, "share", -1, "`index` of the share to run; negative: JOB_COMPLETION_INDEX, and without it all of them")
	f.BoolVar(&o.merge, "merge", false, "merge parts instead of running a share")
	f.StringVar(&o.out, "out", "", "`directory` for the merged tables and charts; empty: only the summary is written")
	f.StringVar(&o.dir, "parts", "", "`directory` of parts")
	f.StringVar(&o.configMaps, "configmaps", "", "`prefix` of the names of ConfigMaps of parts")
	f.StringVar(&o.namespace, "namespace", "", "`namespace` of the ConfigMaps; empty: that of this pod or of the kubeconfig")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty: the service account of this pod")
}

// completionIndex chooses the share of the completion index of a Job; empty is none.
func (o *options) completionIndex(index string) error {
	if index == "" || o.share >= 0 || o.merge {
		return nil
	}
	n, err := strconv.Atoi(index)
	if err != nil || n < 0 {
		return fmt.Errorf("JOB_COMPLETION_INDEX=%q is not an index", index)
	}
	o.share = n
	return nil
}

// run runs a share and stores its part, or runs or reads all parts and writes the results.
func run(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	if o.merge {
		parts, err := o.store.read(ctx, in)
		if err != nil {
			return err
		}
		return writeResults(parts, o.out, out)
	}
	s, err := o.spec()
	if err != nil {
		return err
	}
	if o.share < 0 {
		parts, err := runAll(ctx, s, o.shares)
		if err != nil {
			return err
		}
		return writeResults(parts, o.out, out)
	}
	part, err := s.Part(ctx, o.share, o.shares, s.run)
	if err != nil {
		return err
	}
	return o.store.write(ctx, part, out)
}
