//go:build unix

package kubelet

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// An agent that is restarted while the API server does not list services starts no
// container whose environment contains them until they are listed (pe-1). Running
// containers continue, and static pods do not wait.
func TestNoContainerIsStartedBeforeServicesAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	t.Parallel()
	var away atomic.Bool
	api := &apitest.Server{Fault: func(c apitest.Call) apitest.Fault {
		return apitest.Fault{Refuse: away.Load() && c.Resource == "services"}
	}}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	w := &world{agent: newAgent(t, "process")}
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`, server.URL), 0o600))
	w.flags = []string{"--kubeconfig=" + kubeconfig, "--port=-1", "--healthz-port=-1"}
	api.Put(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	api.Put(&v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: v1.ServiceSpec{ClusterIP: "10.96.0.7", Ports: []v1.ServicePort{{Port: 5432}}}})
	put := func(name string) {
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}, Spec: v1.PodSpec{
			NodeName: "node", EnableServiceLinks: new(true), TerminationGracePeriodSeconds: new(int64(1)), RestartPolicy: v1.RestartPolicyAlways,
			Containers: []v1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", "echo $DB_SERVICE_HOST >" + filepath.Join(w.dir, name) + "; " + untilTerm}}},
		}})
	}
	status := func(name string) (s v1.ContainerStatus, err error) {
		pod := api.Pod("default", name)
		if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
			return s, errors.New("it has no status")
		}
		return pod.Status.ContainerStatuses[0], nil
	}
	runs := func(name string) func() error {
		return func() error {
			s, err := status(name)
			if err == nil && s.State.Running == nil {
				err = fmt.Errorf("%+v", s.State)
			}
			return err
		}
	}
	w.start()
	put("first")
	w.until("the first pod runs", runs("first"))
	before, err := status("first")
	require.NoError(t, err)

	w.agent.kill()
	away.Store(true)
	w.start()
	put("late")
	w.put("own", manifest("own", containers(container("main", untilTerm))))
	w.until("the late pod waits for services", func() error {
		s, err := status("late")
		if err != nil {
			return err
		}
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CreateContainerConfigError" || !strings.Contains(s.State.Waiting.Message, "services have not yet been read at least once") {
			return fmt.Errorf("%+v", s.State)
		}
		return nil
	})
	w.until("the pod from a manifest runs", func() error {
		own := w.pods()["own"]
		if len(own.Status.ContainerStatuses) == 0 || own.Status.ContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("%+v", own.Status)
		}
		return nil
	})
	assert.NoFileExists(t, filepath.Join(w.dir, "late"))
	now, err := status("first")
	require.NoError(t, err)
	assert.Equal(t, before.ContainerID, now.ContainerID, "it was not disturbed")

	away.Store(false)
	w.until("the late pod runs", runs("late"))
	w.until("it has the service's address", func() error {
		text, err := os.ReadFile(filepath.Join(w.dir, "late"))
		if err == nil && string(text) != "10.96.0.7\n" {
			err = fmt.Errorf("%q", text)
		}
		return err
	})

	// A signal does not stop the pods of a cluster.
	api.Remove("pods", "default", "first")
	api.Remove("pods", "default", "late")
	w.remove("own.yaml")
	w.until("no pod is left", func() error {
		if pods := w.pods(); len(pods) > 0 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
}
