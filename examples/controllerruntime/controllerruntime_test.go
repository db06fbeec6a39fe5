// Package controllerruntime_test tests a reconciler of controller-runtime in virtual time:
// a whole manager runs in a synctest bubble, against an API server in memory and nodes
// whose pods run.
package controllerruntime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A reaper is the reconciler under test: it deletes pods one hour after they have failed.
type reaper struct{ client.Client }

func (r reaper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pod v1.Pod
	if err := r.Get(ctx, req.NamespacedName, &pod); err != nil || pod.Status.Phase != v1.PodFailed {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ended := pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt
	if left := time.Until(ended.Add(time.Hour)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, &pod))
}

func TestFailedPodsAreDeletedAfterAnHour(t *testing.T) {
	ctrl.SetLogger(logr.Discard()) // outside the bubble: the logger is global
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server).RESTConfig()
		nodes := fakenode.Start(t.Context(), t, api, fakenode.Config{})
		mgr, err := ctrl.NewManager(api, ctrl.Options{
			Metrics:    metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)}, // names are global, too
		})
		require.NoError(t, err)
		require.NoError(t, ctrl.NewControllerManagedBy(mgr).For(new(v1.Pod)).Complete(reaper{mgr.GetClient()}))
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- mgr.Start(ctx) }()

		c := mgr.GetClient()
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
			Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "job:1"}}},
		}
		require.NoError(t, c.Create(ctx, pod))
		time.Sleep(time.Minute)
		require.NoError(t, nodes.Exit("default", "job", "main", 3))

		time.Sleep(59 * time.Minute)
		require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
		require.Equal(t, v1.PodFailed, pod.Status.Phase)
		time.Sleep(2 * time.Minute)
		require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod)))

		stop() // the manager first, then the nodes, in t.Cleanup
		require.NoError(t, <-stopped)
	})
}
