//go:build unix

package footprint

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// A statusWatch watches the pods of an API server.
type statusWatch struct{ events watch.Interface }

// watchStatuses begins a watch of all pods as they are now.
func watchStatuses(ctx context.Context, api kubernetes.Interface) (*statusWatch, error) {
	pods, err := api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	events, err := api.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{ResourceVersion: pods.ResourceVersion})
	return &statusWatch{events}, err
}

func (s *statusWatch) stop() { s.events.Stop() }

// await returns when the watch first shows that the container of a pod has exited or restarted.
func (s *statusWatch) await(ctx context.Context, pod string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the status of %s: %w", pod, context.Cause(ctx))
		case e, ok := <-s.events.ResultChan():
			if !ok {
				return time.Time{}, fmt.Errorf("the status of %s: the watch has ended", pod)
			}
			if p, ok := e.Object.(*v1.Pod); ok && p.Name == pod && exited(p) {
				return time.Now(), nil
			}
		}
	}
}

// exited reports whether the status shows that the pod's container has exited, running again or not.
func exited(p *v1.Pod) bool {
	if len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	c := p.Status.ContainerStatuses[0]
	return c.RestartCount > 0 || c.State.Running == nil
}
