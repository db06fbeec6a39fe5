package main

import (
	"fmt"
	"image"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The page of a real agent in a real browser, and in that of a terminal.
func TestIntegrationThePageInABrowser(t *testing.T) {
	t.Parallel()
	lab.Need(t, "linux", "chromium", "w3m")
	a := newAgent(t, "process")
	a.write("web.yaml", manifest("web", "volumes: [{name: data, emptyDir: {}}]",
		containers(container("main", untilTerm, "readinessProbe: {exec: {command: ['true', '<script>alert(1)</script>']}, periodSeconds: 1}", "volumeMounts: [{name: data, mountPath: /data}]"))))
	a.write("crash.yaml", manifest("crash", containers(container("main", "exit 3"))))
	a.write("job.yaml", manifest("job", "restartPolicy: Never", containers(container("main", "exit 0"))))
	a.write("gpu.yaml", manifest("gpu", "nodeSelector: {gpu: present}", containers(container("main", untilTerm))))
	a.start("--eviction-hard=pid.available<1")
	a.eventually("it says where to look", func() bool { return strings.Contains(a.out.String(), "http://"+a.addr+"/ shows what runs here") })
	a.eventually("the page has all of it", func() bool {
		_, body, err := a.get("/")
		require.NoError(t, err)
		page := string(body)
		return strings.Contains(page, "CrashLoopBackOff") && strings.Contains(page, "Succeeded") && strings.Contains(page, "NodeAffinity") &&
			strings.Contains(page, "<polyline") && strings.Contains(page, "✓") && strings.Contains(page, ">mounted")
	})

	doc, err := html.Parse(strings.NewReader(lab.Browser{}.DOM(t, "http://"+a.addr)))
	require.NoError(t, err)
	assert.Equal(t, []string{"node"}, textsOf(doc, "h1"))
	assert.Equal(t, []string{"Pods", "Pressure", "Probes", "Volumes", "Images", "Events"}, textsOf(doc, "h2"))
	captions := textsOf(doc, "caption")
	require.Len(t, captions, 4, "%q", captions)
	assert.Equal(t, []string{"4 pods, those in trouble first", "Probes", "Volumes"}, captions[:3])
	rows := textsOf(doc, "tr")
	// The container that crashes may be running again by now.
	for _, want := range []string{"crash-node default ", "web-node default Running 1/1 0 main running", "job-node default Succeeded", "gpu-node default NodeAffinity"} {
		assert.True(t, slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, want) }), "no row begins with %q:\n%s", want, strings.Join(rows, "\n"))
	}
	assert.NotEmpty(t, textsOf(doc, "polyline"), "charts")
	assert.NotEmpty(t, textsOf(doc, "line"), "a threshold")
	assert.Len(t, textsOf(doc, "script"), 1, "the page's own")

	pod, err := html.Parse(strings.NewReader(lab.Browser{}.DOM(t, "http://"+a.addr+"/pod/default/crash-node")))
	require.NoError(t, err)
	assert.Equal(t, []string{"crash-node"}, textsOf(pod, "h1"))
	assert.Contains(t, strings.Join(textsOf(pod, "main"), ""), "exited with code 3 (Error)")
	assert.Contains(t, strings.Join(textsOf(pod, "main"), ""), "start container main")

	light := look(t, lab.Browser{}.Screenshot(t, "http://"+a.addr))
	dark := look(t, lab.Browser{Dark: true}.Screenshot(t, "http://"+a.addr))
	assert.Greater(t, light.brightness, 0.8)
	assert.Less(t, dark.brightness, 0.3)
	look(t, lab.Browser{Width: 500, Height: 1200}.Screenshot(t, "http://"+a.addr))

	text, err := exec.CommandContext(t.Context(), "w3m", "-dump", "-cols", "200", "-I", "UTF-8", "-O", "UTF-8", "http://"+a.addr).Output()
	require.NoError(t, err)
	for _, want := range []string{"4 pods, those in trouble first", "crash-node", "Last plan: ", "pid.available", "Pods are evicted below 1."} {
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

// A sight is what can be said of a picture without eyes.
type sight struct {
	brightness float64 // 0 … 1
	colours    int
}

// look fails the test if there is nothing to be seen.
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
	s.colours = len(seen)
	assert.Greater(t, s.colours, 50, "text and charts have many colours")
	assert.Less(t, float64(most)/float64(pixels), 0.97, "it is not blank")
	return s
}
