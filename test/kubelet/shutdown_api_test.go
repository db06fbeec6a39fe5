//go:build unix

package kubelet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// The API server takes three seconds for each status. The machine may stop only after
// the final ones, and before those the pods were reported as not ready.
func TestTheMachineWaitsForASlowAPIServer(t *testing.T) { // sh-12, ns-10
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	t.Parallel()
	var mu sync.Mutex
	var slow bool
	var statuses []string // of the pod, when the API server has it
	api := &apitest.Server{}
	api.Fault = func(c apitest.Call) apitest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if c.Verb == "patch" && c.Resource == "pods" && c.Subresource == "status" && slow {
			return apitest.Fault{Latency: 3 * time.Second}
		}
		return apitest.Fault{}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r)
		if pod := api.Pod("default", "web"); pod != nil && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/pods/web/status") {
			mu.Lock()
			defer mu.Unlock()
			word := string(pod.Status.Phase)
			for _, c := range pod.Status.Conditions {
				if c.Type == v1.PodReady {
					word += " " + string(c.Status) + " " + c.Reason
				}
			}
			statuses = append(statuses, word)
		}
	}))
	t.Cleanup(server.Close)
	w := &world{agent: newAgent(t, "process")}
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`, server.URL), 0o600))
	api.Put(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	w.flags = []string{"--kubeconfig=" + kubeconfig, "--port=-1", "--healthz-port=-1", "--shutdown-on=http", "--shutdown-grace-period=60s", "--shutdown-propagation=1s"}
	w.start()
	w.until("the node is registered", func() error {
		if api.Get("nodes", "", "node") == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web"}, Spec: v1.PodSpec{
		NodeName: "node", EnableServiceLinks: new(false), TerminationGracePeriodSeconds: new(int64(20)), RestartPolicy: v1.RestartPolicyAlways,
		Containers: []v1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", untilTerm}}},
	}})
	w.until("the pod is ready", func() error {
		if pod := api.Pod("default", "web"); !isReady(pod) {
			return fmt.Errorf("%v", pod.Status)
		}
		return nil
	})
	mu.Lock()
	slow, statuses = true, nil
	mu.Unlock()
	client := http.Client{Timeout: patience}
	answer, err := client.Do(w.shutdownRequest(http.MethodPost, "?wait=true"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusOK, answer.StatusCode)

	// At this moment it has all of it.
	wasShutDown(t, *api.Pod("default", "web"))
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, statuses, "Running False NodeShutdown")
	assert.True(t, strings.HasPrefix(statuses[len(statuses)-1], "Failed "), "%v", statuses)
	w.until("the node reports its shutdown", func() error {
		n, _ := api.Get("nodes", "", "node").(*v1.Node)
		for _, c := range n.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == v1.ConditionFalse && strings.Contains(c.Message, "node is shutting down") {
				return nil
			}
		}
		return fmt.Errorf("%v", n.Status.Conditions)
	})
}

func isReady(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
