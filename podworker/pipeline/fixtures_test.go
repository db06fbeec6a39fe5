package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// observed is a StatusCache of an empty runtime that has just been listed.
type observed struct{}

func (observed) Healthy() error { return nil }

func (observed) Pods() []*runtime.Pod { return nil }

func (observed) Get(uid types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}, nil
}

func (o observed) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return o.Get(uid)
}

func newPod(uid string, generation int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid, Namespace: "default", Generation: int64(generation)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
	}
}

func run(t *testing.T, w *podworker.Workers) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- w.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ran)
	}
}
