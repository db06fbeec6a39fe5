package fakenode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	readyTimeout  = time.Minute      // of Start, until the nodes are ready
	removeTimeout = 10 * time.Second // of Stop, until their objects are removed
)

// A TB is the part of a test that [Start] uses: a *testing.T, or Ginkgo's GinkgoT().
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start runs nodes with the API server of a test until [Nodes.Stop] is called, the test
// ends, or ctx is done, whichever is first. It returns when all nodes are ready; if they
// are not within a minute, the test fails. When the nodes stop, their objects, leases and
// pods are removed from the API server, so that they do not affect the next test.
//
// The nodes must stop before the API server, which waits for their watches. A test that
// stops its API server in a deferred call, which runs before t.Cleanup and before t.Context
// is done, must defer Nodes.Stop after it. A test that stops it in t.Cleanup must register
// that before it calls Start.
//
// A suite that starts its API server in BeforeSuite or TestMain, outside a test, must pass
// a ctx of the suite.
//
// If other nodes with these names run, the test fails: both would run their pods.
//
// In a synctest bubble, Start must be called with the *testing.T of the bubble. Nodes that
// were started outside of it do not take part in its time: its pods remain Pending. Nodes that
// still run at its end, since Start was called with the *testing.T of the outer test, or
// Nodes.Run with a ctx that is not canceled, cause "deadlock: main bubble goroutine has exited
// but blocked goroutines remain"; call Nodes.Stop.
func Start(ctx context.Context, t TB, api *rest.Config, cfg Config) *Nodes {
	t.Helper()
	n, err := New(api, cfg)
	return start(ctx, t, n, err)
}

// StartWithClient is [Start] with a client, such as a fake client; see [NewWithClient].
func StartWithClient(ctx context.Context, t TB, api kubernetes.Interface, cfg Config) *Nodes {
	t.Helper()
	n, err := NewWithClient(api, cfg)
	return start(ctx, t, n, err)
}

func start(ctx context.Context, t TB, n *Nodes, err error) *Nodes {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	if err := n.checkUnused(ctx, time.Now()); err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	run, cancel := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(run) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Logf("fakenode: %v", err)
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		if err := n.Remove(end); err != nil {
			t.Logf("fakenode: failed to remove the objects of the nodes from the API server: %v", err)
		}
	})
	t.Cleanup(n.stop)
	wait, cancelWait := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("timeout after %v", readyTimeout))
	defer cancelWait()
	if err := n.Wait(wait); err != nil {
		t.Fatalf("%v", err)
	}
	return n
}

// checkUnused returns an error if a node of another Nodes with the name of one of n runs: its
// lease was renewed in the last period of renewals. Errors of the API server are those of
// [Nodes.Wait].
func (n *Nodes) checkUnused(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	leases, err := n.conn.API.CoordinationV1().Leases("kube-node-lease").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, lease := range leases.Items {
		s := lease.Spec
		if n.byName[lease.Name] == nil || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
			continue
		}
		period := time.Duration(*s.LeaseDurationSeconds) * time.Second / 4
		if age := now.Sub(s.RenewTime.Time); age < period+period/10 {
			return fmt.Errorf("fakenode: node %s runs already: its lease was renewed %v ago; stop the other nodes (Nodes.Stop) or use other names (Config.Nodes)",
				lease.Name, max(age, 0).Round(time.Millisecond))
		}
	}
	return nil
}

// Stop stops nodes that [Start] has started. It returns when all their requests have
// returned and their objects are removed. Further calls, and calls for nodes of [New], have
// no effect.
func (n *Nodes) Stop() {
	if n.stop != nil {
		n.stop()
	}
}

// Remove deletes the objects of the nodes from the API server: their pods, without grace
// period, their ResourceSlices, leases and Node objects. It must be called after Run has returned. An
// envtest has no controller that deletes them.
func (n *Nodes) Remove(ctx context.Context) error {
	api, now := n.conn.API, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	var errs []error
	failed := func(err error) bool {
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("fakenode: %w", err))
		}
		return err != nil
	}
	pods, err := api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if failed(err) {
		return errors.Join(errs...) // the API server has stopped, or listing is forbidden
	}
	for _, pod := range pods.Items {
		if n.byName[pod.Spec.NodeName] != nil {
			failed(api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now))
		}
	}
	for _, h := range n.hosts {
		for _, slice := range h.spec.slices() {
			failed(api.ResourceV1().ResourceSlices().Delete(ctx, slice.Name, metav1.DeleteOptions{}))
		}
		failed(api.CoordinationV1().Leases("kube-node-lease").Delete(ctx, h.spec.Name, metav1.DeleteOptions{}))
		failed(api.CoreV1().Nodes().Delete(ctx, h.spec.Name, metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}
