// Play plays the history of a cluster on another one, whose nodes may be hollow (examples/hollow):
//
//	go run ./examples/play --kubeconfig ~/.kube/config --trace cluster.sktrace --speed 60
//	go run ./examples/play --kubeconfig ~/.kube/config --trace pods.csv --namespace trace
//
// A trace is a file of SimKube's tracer, or a CSV file of pods (package sim/cluster/trace; with
// --alibaba a file openb_pod_list_*.csv of cluster-trace-gpu-v2023). Its times are divided by
// --speed; the run times of pods as well. Pods end when those of the trace did, by an annotation
// that the nodes of package kube/fakenode read.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/trace"
	"github.com/kubeparts/kubeparts/sim/cluster"
	clustertrace "github.com/kubeparts/kubeparts/sim/cluster/trace"
)

type options struct {
	kubeconfig, trace, namespace, prefix string
	alibaba                              bool
	speed                                float64
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`; empty: the service account of this pod")
	flag.StringVar(&o.trace, "trace", "", "`file` with the trace, .sktrace or .csv; required")
	flag.BoolVar(&o.alibaba, "alibaba", false, "the CSV file is one of cluster-trace-gpu-v2023")
	flag.StringVar(&o.namespace, "namespace", "default", "`namespace` of the pods of a CSV file")
	flag.StringVar(&o.prefix, "prefix", "", "`text` before the names of namespaces, such as virtual-")
	flag.Float64Var(&o.speed, "speed", 1, "`number` of seconds of the trace that take a second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "play:", err)
		os.Exit(1)
	}
}

// start reads the trace and plays it on the cluster of the kubeconfig.
func start(ctx context.Context, o options, out io.Writer) error {
	history, err := read(o)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	config.QPS = -1 // the trace determines the rate
	return play(ctx, config, history, o, out)
}

func read(o options) (*trace.Trace, error) {
	if o.trace == "" {
		return nil, errors.New("--trace is required")
	}
	if !(o.speed > 0) {
		return nil, fmt.Errorf("--speed=%v is not positive", o.speed)
	}
	f, err := os.Open(o.trace)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	faster := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)/o.speed), min(d, time.Millisecond))
	}
	if filepath.Ext(o.trace) != ".csv" {
		history, err := trace.ReadSimKube(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.trace, err)
		}
		for _, lifetimes := range history.Lifetimes {
			for i := range lifetimes {
				lifetimes[i] = faster(lifetimes[i])
			}
		}
		history.SetBehaviors(fakenode.Annotation)
		return history, nil
	}
	parse := clustertrace.ReadPods
	if o.alibaba {
		parse = clustertrace.ReadAlibabaPods
	}
	var pods []cluster.Pod
	if pods, err = parse(f); err != nil {
		return nil, fmt.Errorf("%s: %w", o.trace, err)
	}
	for i := range pods {
		pods[i].RunTime = faster(pods[i].RunTime)
	}
	return trace.OfPods(pods, o.namespace, fakenode.Annotation)
}

// play plays the trace and reports the events to out.
func play(ctx context.Context, config *rest.Config, history *trace.Trace, o options, out io.Writer) error {
	var latest time.Duration
	player, err := trace.NewPlayer(config, trace.Config{
		Speed: o.speed, NamespacePrefix: o.prefix,
		Hooks: trace.Hooks{Played: func(p trace.Played) {
			latest = max(latest, p.Late)
			e := history.Events[p.Event]
			fmt.Fprintf(out, "%v: %d applied, %d deleted\n", e.At, len(e.Applied), len(e.Deleted))
		}},
	})
	if err != nil {
		return err
	}
	began := time.Now()
	if err := player.Play(ctx, history); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d events, %v of the trace in %v, at most %v late\n", len(history.Events), history.Length(), time.Since(began).Round(time.Second), latest.Round(time.Millisecond))
	return nil
}
