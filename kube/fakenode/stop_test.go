package fakenode_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// An httptest server waits in Close for open watches, as an API server does. Its Close
// is called before the end of the test, which would stop the nodes.
func TestStoppedNodesDoNotKeepTheirAPIServerFromStopping(t *testing.T) {
	api := new(apitest.Server)
	network := httptest.NewServer(api)
	nodes := fakenode.Start(t.Context(), t, &rest.Config{Host: network.URL}, fakenode.Config{})
	assert.NotEmpty(t, api.List("nodes"))
	nodes.Stop()
	assert.Empty(t, api.List("nodes"), "they are removed")
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		network.Close()
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("the server waits for watches")
	}
	nodes.Stop() // again is no error
	(&fakenode.Nodes{}).Stop()
}

func TestAnEmptyBehaviorMeansRun(t *testing.T) {
	inWorld(t, fakenode.Config{Behaviors: map[string]fake.Behavior{"main": {NeverReady: true}}}, func(w *world) {
		w.run("web", "", func(p *v1.Pod) {
			p.Annotations = map[string]string{fakenode.Annotation: "neverReady", fakenode.AnnotationPrefix + "main": " "}
		})
		w.run("default", "", func(p *v1.Pod) { p.Annotations = map[string]string{fakenode.Annotation: ""} })
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"), "the annotation of the container takes precedence")
		assert.Equal(t, "Running, ready", w.summary("default"), "the annotation takes precedence over the Config")
	})
}
