package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// newQueue returns a service whose jobs are in the queue for a second. Those of an image that
// is a number exit with it, others run for the given time.
func newQueue(long time.Duration) *queue {
	return &queue{wait: time.Second, jobs: map[string]*job{}, program: func(image string) (time.Duration, int32) {
		if code, err := strconv.Atoi(image); err == nil {
			return 10 * time.Millisecond, int32(code)
		}
		return long, 0
	}}
}

func TestAPodIsAJob(t *testing.T) {
	config := new(apitest.Server).RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	routes, done := make(chan http.Handler, 1), make(chan error, 1)
	go func() {
		done <- run(ctx, client, nodeutil.NoAuth(), "batch", newQueue(2*time.Second), func(c *nodeutil.NodeConfig) error {
			routes <- c.Handler
			return nil
		})
	}()
	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report"},
		Spec: v1.PodSpec{
			NodeName: "batch", RestartPolicy: v1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []v1.Container{{Name: "main", Image: "report:1"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	phase := func(want v1.PodPhase) {
		t.Helper()
		require.Eventually(t, func() bool {
			pod, err := pods.Get(ctx, "report", metav1.GetOptions{})
			return err == nil && pod.Status.Phase == want
		}, time.Minute, 10*time.Millisecond)
	}
	phase(v1.PodPending)
	phase(v1.PodRunning)
	phase(v1.PodSucceeded)

	response := httptest.NewRecorder()
	(<-routes).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/containerLogs/default/report/main", nil))
	log, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Regexp(t, `^job .*-main-0\n$`, string(log))
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		assert.NoError(t, err)
	}
}

func TestTheServiceKeepsTheContract(t *testing.T) {
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		rt, err := jobs.New(jobs.Config{Service: newQueue(time.Hour)})
		require.NoError(t, err)
		return rt
	}, runtimetest.Suite{
		Queued: true, NoInit: true, Within: synctest.Test,
		Gaps: map[string]string{"ContainerWithReadyVolumesStarts": "jobs have no volumes"},
		Containers: runtimetest.Containers{
			Long: v1.Container{Image: "job"},
			Exit: func(code int32) v1.Container { return v1.Container{Image: strconv.Itoa(int(code))} },
		},
	})
}
