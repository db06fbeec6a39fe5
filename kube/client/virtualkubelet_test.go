package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
)

// Two of virtual-kubelet's defects are in its use of the API server. The list of all
// eight is in agent/virtualkubelet_test.go.

// 3: a deletion that is only detected by the missing object is dropped, and the pod
// runs until the agent is restarted.
func TestAPodDeletedWithoutAWatchIsTerminated(t *testing.T) {
	for name, history := range map[string]func(*apitest.Server){
		"the watch continues":     func(*apitest.Server) {},
		"the history is gone too": func(api *apitest.Server) { api.Compact() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t, serving("web"), serving("db"))
				require.Equal(t, v1.PodRunning, a.status("web").Phase)
				a.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} })
				a.api.DropWatches()
				pass(time.Minute)
				a.api.Remove("pods", "prod", "web")
				again := serving("web") // under its name there is another by now
				again.UID = "another"
				a.api.Put(again)
				history(a.api)
				a.faults.set(nil)
				pass(2 * time.Minute)
				pods, err := a.runtime.Pods(t.Context())
				require.NoError(t, err)
				runs := map[string]bool{}
				for _, pod := range pods {
					for _, c := range pod.Containers {
						runs[string(pod.UID)] = runs[string(pod.UID)] || c.State == runtime.ContainerRunning
					}
				}
				assert.False(t, runs["uid-of-web"])
				assert.True(t, runs["another"] && runs["uid-of-db"], "%v", runs)
				assert.Equal(t, v1.PodRunning, a.status("web").Phase)
			})
		})
	}
}

// 7: informers of all Secrets, ConfigMaps and Services.
func TestNothingOfTheWholeClusterIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		objects, err := client.NewObjects(client.ObjectsConfig{Client: connect(t, a.api).API})
		require.NoError(t, err)
		running(t, objects.Run)
		for i := range 20 {
			a.api.Put(newSecret(fmt.Sprintf("s-%d", i), "x"))
		}
		pod := userOf("web", "s-7")
		pod.Spec.EnableServiceLinks = new(true)
		objects.Register(pod)
		_, err = objects.Secret(t.Context(), "prod", "s-7")
		require.NoError(t, err)
		_, _ = objects.Services(t.Context(), "prod")
		pass(time.Hour)
		for _, c := range a.api.Calls() {
			switch {
			case c.Verb != "list" && c.Verb != "watch":
			case c.Resource == "pods":
				assert.Contains(t, c.Selector, "spec.nodeName=", "%v", c)
			case c.Resource == "services":
				assert.NotEmpty(t, c.Namespace, "%v", c)
			default:
				assert.Contains(t, c.Selector, "metadata.name=", "%v", c)
				assert.NotEmpty(t, c.Namespace, "%v", c)
			}
		}
	})
}
