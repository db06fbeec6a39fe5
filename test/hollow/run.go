package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/pprof"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// run does what o says, and writes what it comes to to w.
func run(ctx context.Context, o options, w io.Writer) error {
	if !o.lab {
		return onCluster(ctx, o, o.kubeconfig, w)
	}
	fmt.Fprintln(w, "starting a control plane …")
	return lab.Program(context.WithoutCancel(ctx), w, func(t testing.TB) error {
		return onCluster(ctx, o, lab.NewControlPlane(t, lab.ControlPlaneConfig{}).Kubeconfig, w)
	})
}

// onCluster runs the nodes on the cluster of a kubeconfig file.
func onCluster(ctx context.Context, o options, kubeconfig string, w io.Writer) (err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	other := rest.CopyConfig(config) // who makes the pods is not one of the nodes
	other.QPS = -1
	api, err := kubernetes.NewForConfig(other)
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	calls := new(calls)
	counted := rest.CopyConfig(config)
	counted.Wrap(calls.wrap)
	bare := look()
	h, err := newHollow(o, api, counted, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.remove(context.WithoutCancel(ctx))) }()
	if err := h.start(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	if err := h.makePods(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	if err := h.until(ctx, "pods run", h.o.pods-h.o.pods/20, h.running); err != nil {
		return orInterrupted(ctx, err)
	}
	fmt.Fprintf(w, "all of them live; measuring for %v …\n", o.length)
	before, calledBefore := look(), calls.count()
	select {
	case <-ctx.Done():
		return nil
	case <-h.ended:
		return h.err
	case <-time.After(o.length):
	}
	cost{o, bare, before, look(), calls.count() - calledBefore}.write(w)
	if o.profile != "" {
		return writeProfile(o.profile)
	}
	return nil
}

// orInterrupted is nil for what is an error only because the person has had enough.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func writeProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	goruntime.GC()
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// A hollow is the nodes and pods of one run.
type hollow struct {
	o     options
	api   kubernetes.Interface
	nodes *fakenode.Nodes
	w     io.Writer

	stop  context.CancelFunc
	ended chan struct{} // closed when the nodes have ended, with err
	err   error
}

func newHollow(o options, api kubernetes.Interface, config *rest.Config, w io.Writer) (*hollow, error) {
	nodes, err := fakenode.New(config, fakenode.Config{
		Nodes: fakenode.Many(o.nodes, fakenode.Node{Name: o.name}), NoScheduler: true, OwnWatches: o.ownWatches,
	})
	if err != nil {
		return nil, err
	}
	return &hollow{o: o, api: api, nodes: nodes, w: w, ended: make(chan struct{})}, nil
}

// start starts the nodes, and returns when all are ready.
func (h *hollow) start(ctx context.Context) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx)) // they end with remove
	h.stop = stop
	go func() {
		defer close(h.ended)
		h.err = h.nodes.Run(run)
	}()
	return h.until(ctx, "nodes are ready", h.o.nodes, func(ctx context.Context) (int, error) {
		list, err := h.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		n, ours := 0, map[string]bool{}
		for _, name := range h.nodes.Names() {
			ours[name] = true
		}
		for _, node := range list.Items {
			for _, c := range node.Status.Conditions {
				if ours[node.Name] && c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
					n++
				}
			}
		}
		return n, nil
	})
}

// running counts the pods that run or have run.
func (h *hollow) running(ctx context.Context) (n int, err error) {
	opts := metav1.ListOptions{ResourceVersion: "0"} // what its cache has
	list, err := h.api.CoreV1().Pods(h.o.name).List(ctx, opts)
	if err != nil {
		return 0, err
	}
	for _, pod := range list.Items {
		if pod.Status.Phase == v1.PodRunning {
			n++
		}
	}
	return n, nil
}

// until waits until count says so many, and shows how it goes.
func (h *hollow) until(ctx context.Context, what string, want int, count func(context.Context) (int, error)) error {
	begun, said := time.Now(), time.Time{}
	for {
		n, err := count(ctx)
		if err == nil && n >= want {
			fmt.Fprintf(h.w, "%6.1fs  %d/%d %s\n", time.Since(begun).Seconds(), n, want, what)
			return nil
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(h.w, err)
		} else if time.Since(said) > 2*time.Second {
			said = time.Now()
			fmt.Fprintf(h.w, "%6.1fs  %d/%d %s\n", time.Since(begun).Seconds(), n, want, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ended:
			return fmt.Errorf("the nodes ended: %w", h.err)
		case <-time.After(500 * time.Millisecond):
		}
		if time.Since(begun) > 15*time.Minute {
			return fmt.Errorf("%d/%d %s after 15 minutes (%w): is the API server well, and has it room for so many?", n, want, what, err)
		}
	}
}

// remove takes everything away again.
func (h *hollow) remove(ctx context.Context) error {
	if h.stop == nil {
		return nil
	}
	fmt.Fprintln(h.w, "removing the nodes and the pods …")
	h.stop()
	<-h.ended
	if h.o.lab {
		return nil // all of it goes
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err := h.nodes.Remove(ctx)
	if gone := h.api.CoreV1().Namespaces().Delete(ctx, h.o.name, metav1.DeleteOptions{}); !apierrors.IsNotFound(gone) {
		err = errors.Join(err, gone)
	}
	return err
}
