package hollow

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

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// run runs and measures the nodes and writes progress and results to w.
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
	api, config, err := labenv.NewClient(kubeconfig) // the client that creates the pods is not counted
	if err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	calls := new(calls)
	var nodes engine
	if o.program != "" {
		nodes = newProgram(o, api, kubeconfig, w)
	} else {
		counted := rest.CopyConfig(config)
		counted.QPS = 0
		counted.Wrap(calls.wrap)
		if nodes, err = newInProcess(o, counted); err != nil {
			return err
		}
	}
	bare := measure()
	h := newHollow(o, api, nodes, w)
	defer func() { err = errors.Join(err, h.remove(context.WithoutCancel(ctx))) }()
	if err := h.start(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	if err := h.createPods(ctx); err != nil {
		return orInterrupted(ctx, err)
	}
	if err := h.until(ctx, "pods are running", h.o.pods-h.o.pods/20, h.running); err != nil {
		return orInterrupted(ctx, err)
	}
	fmt.Fprintf(w, "measuring for %v …\n", o.length)
	before, err := nodes.measure()
	if err != nil {
		return err
	}
	calledBefore := calls.count()
	select {
	case <-ctx.Done():
		return nil
	case <-h.ended:
		return h.err
	case <-time.After(o.length):
	}
	after, err := nodes.measure()
	if err != nil {
		return err
	}
	cost{o, bare, before, after, calls.count() - calledBefore}.write(w)
	if o.profile != "" {
		return writeProfile(o.profile)
	}
	return nil
}

// orInterrupted returns nil if ctx is done, else err.
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

// An engine runs nodes.
type engine interface {
	Names() []string
	Run(ctx context.Context) error    // until ctx is done
	Remove(ctx context.Context) error // removes the Node objects, after Run
	measure() (usage, error)          // of the process that runs them
}

// inProcess runs the nodes in this process.
type inProcess struct{ *fakenode.Nodes }

func (inProcess) measure() (usage, error) { return measure(), nil }

func newInProcess(o options, config *rest.Config) (engine, error) {
	nodes, err := fakenode.New(config, fakenode.Config{
		Nodes: fakenode.Many(o.nodes, fakenode.Node{Name: o.name}), NoScheduler: true, API: fakenode.API{OwnWatches: o.ownWatches},
	})
	return inProcess{nodes}, err
}

// A hollow is a set of nodes and pods.
type hollow struct {
	o     options
	api   kubernetes.Interface
	nodes engine
	w     io.Writer

	stop  context.CancelFunc
	ended chan struct{} // closed when the nodes have stopped, with err
	err   error
}

func newHollow(o options, api kubernetes.Interface, nodes engine, w io.Writer) *hollow {
	return &hollow{o: o, api: api, nodes: nodes, w: w, ended: make(chan struct{})}
}

// start starts the nodes and returns when all are ready.
func (h *hollow) start(ctx context.Context) error {
	run, stop := context.WithCancel(context.WithoutCancel(ctx)) // until remove
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

// running counts the running pods.
func (h *hollow) running(ctx context.Context) (n int, err error) {
	opts := metav1.ListOptions{ResourceVersion: "0"} // from the server's cache
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

// until waits until count reaches a number, and prints progress.
func (h *hollow) until(ctx context.Context, what string, want int, count func(context.Context) (int, error)) error {
	began, printed := time.Now(), time.Time{}
	for {
		n, err := count(ctx)
		if err == nil && n >= want {
			fmt.Fprintf(h.w, "%6.1fs  %d/%d %s\n", time.Since(began).Seconds(), n, want, what)
			return nil
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(h.w, err)
		} else if time.Since(printed) > 2*time.Second {
			printed = time.Now()
			fmt.Fprintf(h.w, "%6.1fs  %d/%d %s\n", time.Since(began).Seconds(), n, want, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ended:
			return fmt.Errorf("the nodes stopped: %w", h.err)
		case <-time.After(500 * time.Millisecond):
		}
		if time.Since(began) > 15*time.Minute {
			return fmt.Errorf("%d/%d %s after 15 minutes, last error: %v", n, want, what, err)
		}
	}
}

// remove removes the nodes and pods.
func (h *hollow) remove(ctx context.Context) error {
	if h.stop == nil {
		return nil
	}
	fmt.Fprintln(h.w, "removing the nodes and the pods …")
	h.stop()
	<-h.ended
	if h.o.lab {
		return nil // the cluster is removed
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err := h.nodes.Remove(ctx)
	if gone := h.api.CoreV1().Namespaces().Delete(ctx, h.o.name, metav1.DeleteOptions{}); !apierrors.IsNotFound(gone) {
		err = errors.Join(err, gone)
	}
	return err
}
