package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/status/printer"
)

func TestWhereManifestsAreFetchedComesFromTheFileOrTheFlags(t *testing.T) {
	file := configFile(t, "staticPodURL: http://a/\nstaticPodURLHeader: {X-Key: [one, two]}\nhttpCheckFrequency: 5s\nfileCheckFrequency: 5s\n")
	o, err := parseFlags([]string{"--config=" + file, "--root=" + t.TempDir(), "--listen="})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	assert.Equal(t, "http://a/", o.kubelet.StaticPodURL)
	assert.Equal(t, []string{"one", "two"}, o.kubelet.StaticPodURLHeader["X-Key"])

	o, err = parseFlags([]string{"--config=" + file, "--root=" + t.TempDir(), "--manifest-url=http://user:secret@b/", "--manifest-url-header=A:1,B: 2", "--manifest-url-header=A:3"})
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"A": {"1", "3"}, "B": {"2"}}, o.kubelet.StaticPodURLHeader, "they replace those of the file")
	w, err := (&assembly{opts: o, out: new(printer.Printer)}).sourcesOf()
	require.NoError(t, err)
	assert.Len(t, w.sources, 1)
	assert.Equal(t, "http://user:xxxxx@b/", w.from)

	_, err = parseFlags([]string{"--manifest-url=http://b/", "--manifest-url-header=A"})
	require.ErrorContains(t, err, `"A" is not key:value`)
	o.kubelet.StaticPodURL = "b"
	_, err = (&assembly{opts: o, out: new(printer.Printer)}).sourcesOf()
	assert.ErrorContains(t, err, "--manifest-url")
}

// Pods of a web server, and an agent that starts while that is away.
func TestPodsOfAURLOutliveAgentAndServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	t.Parallel()
	pod := manifest("fetched", containers(container("main", untilTerm)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "open" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(pod))
	}))
	defer web.Close()
	a := newAgent(t, "process")
	a.flags = []string{"--manifest-url=" + web.URL, "--manifest-url-header=X-Key:open"}
	a.start()
	a.eventually("the pod runs", func() bool { return a.pods()["fetched"].Status.Phase == v1.PodRunning })
	before := a.pods()["fetched"]

	a.kill()
	web.Close()
	a.start()
	a.eventually("the pod is known", func() bool { return a.pods()["fetched"].Status.Phase == v1.PodRunning })
	after := a.pods()["fetched"]
	assert.Equal(t, before.UID, after.UID)
	assert.Equal(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID, "it was not disturbed")
	well, why := a.healthz()
	assert.False(t, well)
	assert.Contains(t, why, web.URL)
}
