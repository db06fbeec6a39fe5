package chaos

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An operator creates and deletes pods through the API, one at a time, and retries while the API server
// is unavailable.
type operator struct {
	todo chan step
	idle chan chan struct{}
}

func newOperator() *operator {
	return &operator{todo: make(chan step, 1000), idle: make(chan chan struct{})}
}

// do enqueues an action.
func (h *operator) do(s step) { h.todo <- s }

// empty blocks until all enqueued actions are done.
func (h *operator) empty(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case h.idle <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// work performs actions until ctx is done.
func (h *operator) work(ctx context.Context, w *world) {
	for {
		select {
		case s := <-h.todo:
			h.step(ctx, w, s)
			continue
		case <-ctx.Done():
			return
		default:
		}
		select {
		case s := <-h.todo:
			h.step(ctx, w, s)
		case done := <-h.idle:
			close(done)
		case <-ctx.Done():
			return
		}
	}
}

func (h *operator) step(ctx context.Context, w *world, s step) {
	for ctx.Err() == nil {
		if err := h.try(ctx, w, s); err == nil {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (h *operator) try(ctx context.Context, w *world, s step) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	pods := w.api.CoreV1().Pods(namespace)
	if s.delete != "" {
		w.checker.deleting(s.delete)
		if err := pods.Delete(ctx, s.delete, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
	if _, err := pods.Create(ctx, shapeNamed(s.shape).pod(s.make, nodeName, w.Dir), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
