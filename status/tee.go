package status

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// Tee returns a sink that calls all sinks, one after the other, and joins their errors. If one
// fails, all are called again. Without sinks it discards statuses.
func Tee(sinks ...Sink) Sink { return tee(sinks) }

type tee []Sink

func (t tee) UpdatePodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.UpdatePodStatus(ctx, pod, status))
	}
	return errors.Join(errs...)
}

func (t tee) DeletePod(ctx context.Context, pod *v1.Pod) error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.DeletePod(ctx, pod))
	}
	return errors.Join(errs...)
}
