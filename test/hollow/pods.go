package hollow

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// creators is the number of concurrent creations of pods.
const creators = 8

// tries is the number of attempts per pod while the API server is overloaded.
const tries = 10

// createPods creates the namespace and the pods.
func (h *hollow) createPods(ctx context.Context) error {
	_, err := h.api.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.o.name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", h.o.name, err)
	}
	// Pods require the default service account, which the controllers create. Without
	// controllers it is not required.
	for began := time.Now(); time.Since(began) < 10*time.Second && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if _, err := h.api.CoreV1().ServiceAccounts(h.o.name).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
	}
	return each(ctx, h.w, h.o.pods, "pods are created", h.createPod)
}

// each calls do for the numbers below n, several at once, and prints progress. It returns the first error.
func each(ctx context.Context, w io.Writer, n int, what string, do func(context.Context, int) error) error {
	all, canceled := errgroup.WithContext(ctx)
	all.SetLimit(creators)
	began, printed := time.Now(), time.Now()
	print := func(i int) {
		fmt.Fprintf(w, "%6.1fs  %d/%d %s\n", time.Since(began).Seconds(), i, n, what)
	}
	for i := range n {
		if canceled.Err() != nil {
			break
		}
		if time.Since(printed) > 2*time.Second {
			printed = time.Now()
			print(i)
		}
		all.Go(func() error {
			if err := do(canceled, i); err != nil {
				return fmt.Errorf("%d/%d %s: %w", i, n, what, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil || ctx.Err() != nil {
		return cmp.Or(ctx.Err(), err)
	}
	print(n)
	return nil
}

// createPod creates pod number i, unless it exists.
func (h *hollow) createPod(ctx context.Context, i int) (err error) {
	for range tries {
		_, err = h.api.CoreV1().Pods(h.o.name).Create(ctx, h.pod(i), metav1.CreateOptions{})
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			return nil
		case !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsTooManyRequests(err):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return err
}

// behavior returns the behavior of pod number i.
func (h *hollow) behavior(i int) string {
	if h.o.steady {
		return "run"
	}
	switch i % 20 {
	case 0:
		return "exit=1@30s"
	case 1:
		return "flap=20s"
	case 2:
		return "exit=0@1m0s"
	}
	return "run"
}

// pod returns pod number i.
func (h *hollow) pod(i int) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", h.o.name, i), Namespace: h.o.name, Labels: map[string]string{"app": h.o.name},
			Annotations: map[string]string{fakenode.Annotation: h.behavior(i)},
		},
		Spec: v1.PodSpec{
			AutomountServiceAccountToken: new(false),
			NodeSelector:                 map[string]string{"kubernetes.io/os": "linux"},
			Containers:                   []v1.Container{{Name: "main", Image: "hollow:1"}},
		},
	}
	if !h.o.schedule {
		pod.Spec.NodeName = h.nodes.Names()[i%h.o.nodes]
	}
	return pod
}
