package controllers

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

const schedulerName = "kube-scheduler"

// kubeScheduler is the scheduler with its default profile. It is not among the controllers
// that Config.Controllers selects.
var kubeScheduler = component{name: schedulerName, build: newScheduler}

// newScheduler uses informers of its own: kube-scheduler does not cache terminated pods.
func newScheduler(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	e.separate = scheduler.NewInformerFactory(client, 0, nil)
	recorder := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	s, err := scheduler.New(ctx, client, e.separate, nil, profile.NewRecorderFactory(recorder), scheduler.WithKubeConfig(e.as(schedulerName)))
	if err != nil {
		recorder.Shutdown()
		return nil, err
	}
	return func(ctx context.Context) {
		defer recorder.Shutdown()
		if err := recorder.StartRecordingToSinkWithContext(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to start the event recorder; the scheduler records no events")
		}
		if s.WaitForHandlersSync(ctx) == nil {
			s.Run(ctx)
		}
	}, nil
}
