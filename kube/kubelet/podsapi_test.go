package kubelet

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podspb "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

func TestThePodsAPIReportsTheLifecycleOfAStaticPod(t *testing.T) {
	cfg := runnable(t, "")
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	conn, err := grpc.NewClient("unix:"+filepath.Join(cfg.RootDir, "pods-api", "pods-api.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	client := podspb.NewPodsClient(conn)
	watching, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		_, err := client.ListPods(watching, &podspb.ListPodsRequest{}, grpc.WaitForReady(true))
		require.NoError(t, err, "the sources have synced")
	}, 90*time.Second, 50*time.Millisecond)
	watch, err := client.WatchPods(watching, &podspb.WatchPodsRequest{})
	require.NoError(t, err)
	// next returns the next event with a type, and its pod.
	next := func(want podspb.EventType, phase v1.PodPhase) *v1.Pod {
		for {
			e, err := watch.Recv()
			require.NoError(t, err)
			pod := new(v1.Pod)
			require.NoError(t, pod.Unmarshal(e.Pod))
			if e.Type == want && (phase == "" || pod.Status.Phase == phase) {
				return pod
			}
		}
	}
	next(podspb.EventType_INITIAL_SYNC_COMPLETE, "")
	manifest := filepath.Join(cfg.Configuration.StaticPodPath, "web.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: nginx}]}}`), 0o600))
	added := next(podspb.EventType_ADDED, "")
	assert.Equal(t, "web-n1", added.Name)
	next(podspb.EventType_MODIFIED, v1.PodRunning)
	_, err = client.GetPod(watching, &podspb.GetPodRequest{PodUID: string(added.UID)})
	require.NoError(t, err)
	_, err = client.GetPod(watching, &podspb.GetPodRequest{PodUID: "none"})
	require.Error(t, err)
	require.NoError(t, os.Remove(manifest))
	assert.Equal(t, added.UID, next(podspb.EventType_DELETED, "").UID)

	answer := httptest.NewRecorder()
	k.StatusPage().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/metrics", nil))
	assert.Contains(t, answer.Body.String(), `kubelet_pod_requests_get_total{server_api_version="v1alpha1",status_code="NotFound"} 1`)
	assert.Contains(t, answer.Body.String(), `kubelet_pod_requests_get_total{server_api_version="v1alpha1",status_code="OK"} 1`)
	cancel()
	require.NoError(t, <-ran)
}
