package statuspage_test

import (
	"context"
	"fmt"
	"image"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// probed is a prober.Handler that succeeds.
type probed struct{}

func (probed) Probe(context.Context, prober.Target) (prober.Outcome, error) {
	return prober.Outcome{Result: runtime.ProbeSuccess, Output: "<script>alert(1)</script>"}, nil
}

// busyNode runs an agent with a pod of each kind and returns the URL of its page.
func busyNode(t *testing.T) string {
	t.Helper()
	web := newPod("web")
	web.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}}
	web.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	web.Spec.Containers[0].ReadinessProbe = &v1.Probe{
		ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true", "<script>alert(1)</script>"}}}, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	job := newPod("job")
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	crash := newPod("crash")
	crash.Spec.RestartPolicy = v1.RestartPolicyNever
	source, rt, history := new(podsource.Memory), new(runtimetest.Runtime), new(statuspage.History)
	source.Set(web, job, crash, newPod("gpu"))
	rt.Behave("crash", fake.Behavior{Exit: &fake.Exit{Code: 3}})
	rt.Behave("job", fake.Behavior{Exit: new(fake.Exit)})

	mounter := new(volumetest.Mounter)
	empty, err := emptydir.New(emptydir.Config{Mounter: mounter})
	require.NoError(t, err)
	volumes, err := volume.New(volume.Config{RootDir: t.TempDir(), Mounter: mounter, Plugins: []volume.Plugin{empty}})
	require.NoError(t, err)
	thresholds := []eviction.Threshold{{Signal: eviction.PIDAvailable, Value: eviction.Value{Quantity: new(resource.MustParse("1"))}}}
	evictions, err := eviction.New(eviction.Config{
		Policy:  eviction.Policy{Thresholds: thresholds},
		Summary: func(context.Context, bool) (*statsapi.Summary, error) { return new(statsapi.Summary), nil },
		Pods:    noPods{},
	})
	require.NoError(t, err)
	for i := range 3 {
		history.EvictionPass(eviction.Result{Plan: &eviction.Plan{
			At: time.Now().Add(time.Duration(i-3) * 10 * time.Second), Observations: []eviction.Observation{{Signal: eviction.PIDAvailable, Available: int64(900 - i), Capacity: 1000}},
		}}, nil)
	}
	history.Synced(cri.SyncInfo{Pod: crash, Begin: time.Now(), End: time.Now(), Plan: plan.Plan{Start: []plan.Start{{Kind: plan.Regular, Name: "main", Why: "it has not run yet"}}}})
	onlyCPU := pipeline.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
		if pod.Name == "gpu" {
			return &runtime.Rejection{Reason: "NodeAffinity", Message: "no GPU"}
		}
		return nil
	})
	a, err := agent.New(agent.Config{
		Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: source}, Sink: new(status.MemorySink),
		Subsystems: agent.Subsystems{Admitters: pipeline.Admitters{onlyCPU}, Volumes: volumes, Probes: prober.Handlers{Exec: probed{}}}, Record: history.Record,
	})
	require.NoError(t, err)
	h, err := statuspage.New(statuspage.Config{Agent: a, History: history, NodeName: "node", Volumes: volumes, Evictions: evictions})
	require.NoError(t, err)
	ln, err := statuspage.Listen("127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 3)
	go func() { ran <- a.Run(ctx) }()
	go func() { ran <- volumes.Run(ctx) }()
	go func() { ran <- statuspage.Serve(ctx, ln, h, nil) }()
	t.Cleanup(func() {
		cancel()
		for range 3 {
			assert.NoError(t, <-ran)
		}
	})
	require.Eventually(t, func() bool {
		_, body := get(t, h, "/")
		return strings.Contains(body, "Failed") && strings.Contains(body, "Succeeded") && strings.Contains(body, "NodeAffinity") &&
			strings.Contains(body, "<polyline") && strings.Contains(body, "✓") && strings.Contains(body, ">mounted")
	}, time.Minute, 100*time.Millisecond)
	return statuspage.Reach(ln.Addr())
}

// The page of a running agent in a graphical browser, and in one for terminals.
func TestIntegrationThePageInABrowser(t *testing.T) {
	lab.Need(t, "linux", "chromium", "w3m")
	url := busyNode(t)
	doc, err := html.Parse(strings.NewReader(lab.Browser{}.DOM(t, url)))
	require.NoError(t, err)
	assert.Equal(t, []string{"node"}, textsOf(doc, "h1"))
	assert.Equal(t, []string{"Pods", "Pressure", "Probes", "Volumes", "Images", "Events"}, textsOf(doc, "h2"))
	captions := textsOf(doc, "caption")
	require.Len(t, captions, 4, "%q", captions)
	assert.Equal(t, []string{"4 pods, those with problems first", "Probes", "Volumes"}, captions[:3])
	rows := textsOf(doc, "tr")
	for _, want := range []string{"crash default Failed", "web default Running 1/1 0 main running", "job default Succeeded", "gpu default NodeAffinity"} {
		assert.True(t, slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, want) }), "no row begins with %q:\n%s", want, strings.Join(rows, "\n"))
	}
	assert.NotEmpty(t, textsOf(doc, "polyline"), "charts")
	assert.NotEmpty(t, textsOf(doc, "line"), "a threshold")
	assert.Len(t, textsOf(doc, "script"), 1, "the page's own")

	pod, err := html.Parse(strings.NewReader(lab.Browser{}.DOM(t, url+"pod/default/crash")))
	require.NoError(t, err)
	assert.Equal(t, []string{"crash"}, textsOf(pod, "h1"))
	assert.Contains(t, strings.Join(textsOf(pod, "main"), ""), "exited with code 3 (Error)")
	assert.Contains(t, strings.Join(textsOf(pod, "main"), ""), "start container main")

	light := look(t, lab.Browser{}.Screenshot(t, url))
	dark := look(t, lab.Browser{Dark: true}.Screenshot(t, url))
	assert.Greater(t, light.brightness, 0.8)
	assert.Less(t, dark.brightness, 0.3)
	look(t, lab.Browser{Width: 500, Height: 1200}.Screenshot(t, url))

	text, err := exec.CommandContext(t.Context(), "w3m", "-dump", "-cols", "200", "-I", "UTF-8", "-O", "UTF-8", url).Output()
	require.NoError(t, err)
	for _, want := range []string{"4 pods, those with problems first", "crash", "Last plan, ", "pid.available", "Pods are evicted below 1."} {
		assert.Contains(t, string(text), want)
	}
}

// textsOf returns the texts of the elements of a name, with single spaces.
func textsOf(doc *html.Node, name string) (texts []string) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != name {
			continue
		}
		var b strings.Builder
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data + " ")
			}
		}
		texts = append(texts, strings.Join(strings.Fields(b.String()), " "))
	}
	return texts
}

// A sight has the measures of a picture.
type sight struct {
	brightness float64 // 0 … 1
	colors     int
}

// look returns measurements of a picture, and fails the test if it is blank.
func look(t *testing.T, picture image.Image) sight {
	t.Helper()
	var s sight
	seen, most, pixels := map[string]int{}, 0, 0
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y += 3 {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			s.brightness += float64(r+g+b) / 3 / 0xffff
			c := fmt.Sprint(r>>8, g>>8, b>>8)
			seen[c]++
			most, pixels = max(most, seen[c]), pixels+1
		}
	}
	s.brightness /= float64(pixels)
	s.colors = len(seen)
	assert.Greater(t, s.colors, 50, "text and charts have many colors")
	assert.Less(t, float64(most)/float64(pixels), 0.97, "it is not blank")
	return s
}

// noPods is a node without pods.
type noPods struct{}

func (noPods) Running() []*v1.Pod                           { return nil }
func (noPods) Evict(context.Context, eviction.Victim) error { return nil }
func (noPods) Cleaned(types.UID) bool                       { return true }

func newPod(name string) *v1.Pod {
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "main", Image: name, Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hidden-password"}},
		}}},
	})
}

func get(t *testing.T, h http.Handler, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}
