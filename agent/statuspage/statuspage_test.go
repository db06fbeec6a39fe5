package statuspage_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/secret"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func newPod(name string) *v1.Pod {
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: name, Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hidden-password"}},
		}}},
	})
}

// serve runs an agent with the pods and returns its Handler for cfg. The returned func
// stops it. It must run in a synctest bubble.
func serve(t *testing.T, cfg statuspage.Config, agentConfig agent.Config, pods ...*v1.Pod) (h *statuspage.Handler, stop func()) {
	t.Helper()
	source := new(podsource.Memory)
	source.Set(pods...)
	if agentConfig.Runtime == nil {
		agentConfig.Runtime = new(runtimetest.Runtime)
	}
	agentConfig.Sources, agentConfig.Sink = map[string]podsource.PodSource{podsource.APISource: source}, new(status.MemorySink)
	a, err := agent.New(agentConfig)
	require.NoError(t, err)
	cfg.Agent = a
	h, err = statuspage.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	return h, func() {
		cancel()
		assert.NoError(t, <-ran)
	}
}

func get(t *testing.T, h http.Handler, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestTheStateOfAnAgentIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		history := new(statuspage.History)
		h, stop := serve(t, statuspage.Config{History: history, NodeName: "edge-1", Runtime: "in memory"}, agent.Config{Record: history.Record}, newPod("web"))
		defer stop()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		history.Record(runtime.Event{Object: runtime.PodRef(newPod("web")), Type: v1.EventTypeWarning, Reason: "Odd", Message: "env is hidden-password"})

		code, body := get(t, h, "/")
		assert.Equal(t, http.StatusOK, code)
		for _, want := range []string{"edge-1", "Runs on in memory.", `href="pod/default/web"`, "Running", "The agent does not manage images.", "Odd", `<a href="healthz">`} {
			assert.Contains(t, body, want)
		}
		assert.NotContains(t, body, `href="metrics"`)
		code, body = get(t, h, "/pod/default/web")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, "env is &lt;redacted&gt;")
		assert.NotContains(t, body, "hidden-password")

		_, body = get(t, h, "/pods")
		assert.NotContains(t, body, "hidden-password")
		var list v1.PodList
		require.NoError(t, json.Unmarshal([]byte(body), &list))
		require.Len(t, list.Items, 1)
		assert.Equal(t, v1.PodRunning, list.Items[0].Status.Phase)

		_, body = get(t, h, "/explain")
		assert.Contains(t, body, "pod default/web (uid-web): The pod is up to date; next check in ")
		var found []podworker.Snapshot
		_, body = get(t, h, "/explain?output=json&uid=uid-web")
		require.NoError(t, json.Unmarshal([]byte(body), &found))
		require.Len(t, found, 1)
		assert.Empty(t, found[0].Step)
		assert.False(t, found[0].Next.IsZero())
		code, _ = get(t, h, "/explain?uid=other")
		assert.Equal(t, http.StatusNotFound, code)
		code, body = get(t, h, "/healthz")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, "[+] pleg ok\n")
	})
}

// A pod that waits for an object names it, and when it is retried.
func TestAPodThatWaitsForAVolumeNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin, err := secret.New(secret.Config{Objects: volumetest.NewObjects(), Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
		require.NoError(t, err)
		volumes, err := volume.New(volume.Config{RootDir: t.TempDir(), Mounter: new(volumetest.Mounter), Plugins: []volume.Plugin{plugin}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- volumes.Run(ctx) }()
		pod := newPod("web")
		pod.Spec.Volumes = []v1.Volume{{Name: "conf", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s-test", DefaultMode: new(int32(0o644))}}}}
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "conf", MountPath: "/conf"}}
		h, stop := serve(t, statuspage.Config{Volumes: volumes}, agent.Config{Subsystems: agent.Subsystems{Volumes: volumes}}, pod)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		want := `Failing to mount volumes for 1m40s: volume "conf": .*s-test.*; retry in [0-9ms.]+`
		for _, path := range []string{"/explain", "/", "/pod/default/web"} {
			_, body := get(t, h, path)
			assert.Regexp(t, want, html.UnescapeString(body), path)
			t.Log(regexp.MustCompile(want).FindString(html.UnescapeString(body)))
		}
		_, body := get(t, h, "/")
		assert.Contains(t, html.UnescapeString(body), "Retry in ")
		stop()
		cancel()
		require.NoError(t, <-ran)
	})
}

func TestAFailedCheckIsReported(t *testing.T) {
	checks := []statuspage.Check{{Name: "disk", Check: func() error { return errors.New("full\x1b[2J") }}, {Name: "none"}}
	h := handler(t, statuspage.Config{Checks: checks})
	code, body := get(t, h, "/healthz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[-] disk: full\\x1b[2J\n[+] none ok\n", body)
	_, body = get(t, h, "/")
	assert.Contains(t, body, "<strong>disk</strong>: full")
}

// handler returns the Handler of an agent that does not run.
func handler(t *testing.T, cfg statuspage.Config) *statuspage.Handler {
	t.Helper()
	var err error
	cfg.Agent, err = agent.New(agent.Config{
		Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{podsource.APISource: new(podsource.Memory)}, Sink: new(status.MemorySink),
	})
	require.NoError(t, err)
	h, err := statuspage.New(cfg)
	require.NoError(t, err)
	return h
}

func TestFurtherHandlersAreServedAndLinked(t *testing.T) {
	answer := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	h := handler(t, statuspage.Config{Handlers: map[string]http.Handler{"/metrics": answer("up 1"), "/shutdown": answer("off")}})
	_, body := get(t, h, "/metrics")
	assert.Equal(t, "up 1", body)
	_, body = get(t, h, "/")
	assert.Contains(t, body, `<a href="metrics">metrics</a>.`)
	assert.NotContains(t, body, "shutdown")

	// Below another path all links lead back to the page.
	mux := http.NewServeMux()
	mux.Handle("/node/", http.StripPrefix("/node", h))
	code, body := get(t, mux, "/node/a/b/missing")
	assert.Equal(t, http.StatusNotFound, code)
	assert.Contains(t, body, `href="../../page.css"`)
	code, body = get(t, mux, "/node/metrics")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "up 1", body)
}

func TestAnInvalidConfigIsAnError(t *testing.T) {
	_, err := statuspage.New(statuspage.Config{})
	require.EqualError(t, err, "statuspage: Config.Agent is nil")
	a := func() *agent.Agent {
		a, err := agent.New(agent.Config{
			Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{podsource.APISource: new(podsource.Memory)}, Sink: new(status.MemorySink),
		})
		require.NoError(t, err)
		return a
	}()
	for _, pattern := range []string{"", "GET /healthz", "/{x"} {
		_, err := statuspage.New(statuspage.Config{Agent: a, Handlers: map[string]http.Handler{pattern: http.NotFoundHandler()}})
		require.ErrorContains(t, err, "statuspage: Config.Handlers: ")
	}
}

// A source that does not sync is reported, on the page at once.
func TestASourceThatHasNotSyncedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := map[string]podsource.PodSource{podsource.APISource: new(podsource.Memory), "mine": new(podsource.Memory)}
		sources["mine"].(*podsource.Memory).Set()
		a, err := agent.New(agent.Config{Runtime: new(runtimetest.Runtime), Sources: sources, Sink: new(status.MemorySink)})
		require.NoError(t, err)
		h, err := statuspage.New(statuspage.Config{Agent: a})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- a.Run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, body := get(t, h, "/")
		assert.Contains(t, body, "sources that have not synced: api: pods that they no longer specify are not stopped")
		code, _ := get(t, h, "/healthz")
		assert.Equal(t, http.StatusOK, code, "it may still sync")
		time.Sleep(time.Minute)
		code, body = get(t, h, "/healthz")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Contains(t, body, "[-] sources: sources that have not synced: api")
		sources[podsource.APISource].(*podsource.Memory).Set()
		synctest.Wait()
		code, body = get(t, h, "/healthz")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, body, "[+] sources ok")
		cancel()
		require.NoError(t, <-ran)
	})
}

// The age of a pod is not the age of the agent, and a volume that no plugin supports is a
// failure.
func TestThePodOfARestartedAgentKeepsItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := newPod("web")
		pod.Status.StartTime = &metav1.Time{Time: time.Now().Add(-50 * time.Hour)}
		h, stop := serve(t, statuspage.Config{}, agent.Config{}, pod)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, body := get(t, h, "/")
		assert.Contains(t, body, `data-label="Age" class="num">2 d 2 h<`)
		assert.NotContains(t, body, "syncing")
		stop()
	})
	synctest.Test(t, func(t *testing.T) {
		plugin, err := secret.New(secret.Config{Objects: volumetest.NewObjects(), Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
		require.NoError(t, err)
		volumes, err := volume.New(volume.Config{RootDir: t.TempDir(), Mounter: new(volumetest.Mounter), Plugins: []volume.Plugin{plugin}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- volumes.Run(ctx) }()
		pod := newPod("web")
		pod.Spec.Volumes = []v1.Volume{{Name: "old", VolumeSource: v1.VolumeSource{Glusterfs: new(v1.GlusterfsVolumeSource)}}}
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "old", MountPath: "/old"}}
		h, stop := serve(t, statuspage.Config{Volumes: volumes}, agent.Config{Subsystems: agent.Subsystems{Volumes: volumes}}, pod)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, body := get(t, h, "/")
		assert.Contains(t, body, `<tr class="failing">`)
		_, body = get(t, h, "/explain")
		assert.Regexp(t, `^pod default/web \(uid-web\): (Failing|The last)`, body)
		stop()
		cancel()
		require.NoError(t, <-ran)
	})
}
