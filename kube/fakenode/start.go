package fakenode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// patience is how long nodes may take to become ready, and endPatience how long
// their traces in the API server may take to be removed.
const (
	patience    = time.Minute
	endPatience = 10 * time.Second
)

// A TB is what [Start] needs of a test: *testing.T is one, and so is Ginkgo's
// GinkgoT().
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start runs nodes in a test's API server until [Nodes.Stop], the end of the test, or
// the end of ctx, whichever is first, and returns when all are ready. The test fails
// if they are not within a minute. At the end the objects of the nodes, their leases
// and their pods are removed from the API server, so that the next test finds none of
// them.
//
// The nodes must stop before the API server does: it waits for their watches. A test
// that stops its API server in a deferred call, which runs before t.Cleanup and
// before the end of t.Context, defers Nodes.Stop after it. One that stops it in
// t.Cleanup registers that before it calls Start.
//
// A suite that starts its API server in BeforeSuite or TestMain, and has no test to
// end with there, passes its own ctx.
func Start(ctx context.Context, t TB, api *rest.Config, cfg Config) *Nodes {
	t.Helper()
	n, err := New(api, cfg)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	run, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(run) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Logf("fakenode: %v", err)
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer cancel()
		if err := n.Remove(end); err != nil {
			t.Logf("fakenode: what the nodes left in the API server stays there: %v", err)
		}
	})
	t.Cleanup(n.stop)
	wait, cancelWait := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took more than %v", patience))
	defer cancelWait()
	if err := n.Wait(wait); err != nil {
		t.Fatalf("%v", err)
	}
	return n
}

// Stop ends nodes that [Start] has started, and returns when their calls have returned
// and their objects are removed. Later calls, and the call at the end of the test, do
// nothing. It does nothing for nodes of [New].
func (n *Nodes) Stop() {
	if n.stop != nil {
		n.stop()
	}
}

// Remove takes away what the nodes left in the API server: their pods, with no grace,
// their leases and their objects. It is for when Run has returned: an envtest has no
// controller that does it.
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
		return errors.Join(errs...) // it is not there any more, or we may not
	}
	for _, pod := range pods.Items {
		if n.byName[pod.Spec.NodeName] != nil {
			failed(api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now))
		}
	}
	for _, a := range n.agents {
		failed(api.CoordinationV1().Leases("kube-node-lease").Delete(ctx, a.spec.Name, metav1.DeleteOptions{}))
		failed(api.CoreV1().Nodes().Delete(ctx, a.spec.Name, metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}
