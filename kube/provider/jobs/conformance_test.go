package jobs_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A subject is a runtime and its service.
type subject struct {
	*jobs.Runtime
	queue *queue
}

func over(t *testing.T, q *queue) *subject {
	rt, err := jobs.New(jobs.Config{Service: q})
	require.NoError(t, err)
	return &subject{rt, q}
}

func TestJobsKeepTheContract(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "after a second": time.Second} {
		t.Run(name, func(t *testing.T) {
			runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime { return over(t, &queue{wait: wait}) }, runtimetest.Suite{
				Queued: true,
				NoInit: true, // jobs have no order
				Containers: runtimetest.Containers{
					Long: v1.Container{Image: "long"}, Stubborn: v1.Container{Image: "stubborn"},
					Exit: func(code int32) v1.Container { return v1.Container{Image: strconv.Itoa(int(code))} },
				},
				Backend: runtimetest.Backend{
					Reopen: func(t *testing.T, rt runtime.Runtime) runtime.Runtime { return over(t, rt.(*subject).queue) },
					Calls:  func(rt runtime.Runtime) int { return rt.(*subject).queue.count() },
				},
				Gaps: map[string]string{
					"ContainerWithReadyVolumesStarts": "jobs have no volumes",
				},
				Within: synctest.Test,
			})
		})
	}
}
