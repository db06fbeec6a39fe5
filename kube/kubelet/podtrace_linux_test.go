package kubelet_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/docs"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
)

var update = flag.Bool("update", false, "rewrite the trees in docs/tracing.md")

// A fileSpan is one line of the file of a fileExporter.
type fileSpan struct {
	Trace, Span, Parent, Name, Kind, Status string
	Start                                   time.Time
	Attributes                              map[string]string
}

// A fileExporter appends spans to a file, one JSON object per line.
type fileExporter struct {
	mu   sync.Mutex
	file *os.File
}

func (e *fileExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range spans {
		out := fileSpan{
			Trace: s.SpanContext().TraceID().String(), Span: s.SpanContext().SpanID().String(), Name: s.Name(), Kind: s.SpanKind().String(),
			Status: s.Status().Description, Start: s.StartTime(), Attributes: map[string]string{},
		}
		if s.Parent().IsValid() {
			out.Parent = s.Parent().SpanID().String()
		}
		for _, a := range s.Attributes() {
			out.Attributes[string(a.Key)] = a.Value.String()
		}
		if err := json.NewEncoder(e.file).Encode(out); err != nil {
			return err
		}
	}
	return nil
}

func (e *fileExporter) Shutdown(context.Context) error { return e.file.Close() }

// readSpans reads the file of a fileExporter.
func readSpans(t require.TestingT, path string) (spans []fileSpan) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var s fileSpan
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		spans = append(spans, s)
	}
	return spans
}

// drawSpan draws a span and those below it.
func drawSpan(root fileSpan, all []fileSpan) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s)\n", root.Name, root.Kind)
	if pod := root.Attributes["k8s.pod"]; pod != "" {
		out.Reset()
		fmt.Fprintf(&out, "%s (%s) k8s.pod=%s\n", root.Name, root.Kind, pod)
	}
	var children []fileSpan
	for _, s := range all {
		if s.Parent == root.Span && s.Trace == root.Trace {
			children = append(children, s)
		}
	}
	slices.SortFunc(children, func(a, b fileSpan) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Name, b.Name)) })
	for i, child := range children {
		first, rest := "├─ ", "│  "
		if i == len(children)-1 {
			first, rest = "└─ ", "   "
		}
		for j, line := range slices.Collect(strings.Lines(drawSpan(child, all))) {
			out.WriteString([]string{first, rest}[min(j, 1)] + line)
		}
	}
	return out.String()
}

// A propagated is a CRI runtime that records the trace contexts that it receives.
type propagated struct {
	internalapi.RuntimeService
	parents chan string
}

func (p propagated) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	p.parents <- strings.Join(md.Get("traceparent"), " ")
	return p.RuntimeService.RunPodSandbox(ctx, config, handler)
}

// serveCRI serves a runtime in memory at a socket until the test ends.
func serveCRI(t *testing.T, wrap func(internalapi.RuntimeService) internalapi.RuntimeService) (endpoint string) {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	endpoint = "unix://" + filepath.Join(t.TempDir(), "s")
	listener, err := serve.Listen(t.Context(), endpoint)
	require.NoError(t, err)
	server, err := serve.New(serve.Config{Listener: listener, Runtime: wrap(fake), Images: fake, Streams: fake})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	return endpoint
}

// runTraced runs a kubelet without cgroups in a directory, until stop is called.
func runTraced(t *testing.T, dir string, provider trace.TracerProvider, k kubeletconfig.KubeletConfiguration) (stop func()) {
	t.Helper()
	k.EvictionHard, k.PodLogsDir, k.CgroupsPerQOS, k.EnforceNodeAllocatable = map[string]string{}, filepath.Join(dir, "logs"), new(false), []string{"none"}
	node, err := kubelet.Open(t.Context(), kubelet.Config{
		Configuration: &k, NodeName: "edge-1", RootDir: filepath.Join(dir, "root"), Host: kubelet.Host{TracerProvider: provider}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(dir, "root"), syscall.MNT_DETACH) }) // root has mounted it for mount propagation
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- node.Run(ctx) }()
	return func() { cancel(); require.NoError(t, <-ran) }
}

// The start and the termination of a pod are exported to a file as trees of spans, which
// docs/tracing.md shows.
func TestTheStartOfAPodIsATreeOfSpans(t *testing.T) {
	dir := t.TempDir()
	spansFile, manifest := filepath.Join(dir, "spans.json"), filepath.Join(dir, "manifests", "web.yaml")
	file, err := os.Create(spansFile)
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(&fileExporter{file: file}))
	defer provider.Shutdown(t.Context())
	require.NoError(t, os.Mkdir(filepath.Dir(manifest), 0o700))
	require.NoError(t, os.WriteFile(manifest, []byte(podManifest("web")), 0o600))

	parents := make(chan string, 1)
	endpoint := serveCRI(t, func(rt internalapi.RuntimeService) internalapi.RuntimeService { return propagated{rt, parents} })
	stop := runTraced(t, dir, provider, kubeletconfig.KubeletConfiguration{StaticPodPath: filepath.Dir(manifest), ContainerRuntimeEndpoint: endpoint})

	// find returns the first span with a name whose attribute has a value.
	find := func(t require.TestingT, name, attribute, value string) fileSpan {
		spans := readSpans(t, spansFile)
		i := slices.IndexFunc(spans, func(s fileSpan) bool { return s.Name == name && s.Attributes[attribute] == value })
		require.GreaterOrEqual(t, i, 0, name)
		return spans[i]
	}
	var roots []fileSpan
	await := func(name, attribute, value string) {
		require.EventuallyWithT(t, func(t *assert.CollectT) { roots = append(roots, find(t, name, attribute, value)) }, 90*time.Second, 20*time.Millisecond)
	}
	await("syncPod", "k8s.pod.update_type", "create")
	require.NoError(t, os.Remove(manifest))
	await("syncTerminatingPod", "k8s.pod", "default/web-edge-1")
	await("syncTerminatedPod", "k8s.pod", "default/web-edge-1")
	stop()

	all := readSpans(t, spansFile)
	var trees []string
	for _, root := range roots {
		assert.Empty(t, root.Parent)
		assert.Empty(t, root.Status)
		trees = append(trees, drawSpan(root, all))
	}
	checkTrees(t, strings.Join(trees, "\n"))
	run := find(t, "runtime.v1.RuntimeService/RunPodSandbox", "rpc.method", "runtime.v1.RuntimeService/RunPodSandbox")
	assert.Equal(t, "00-"+roots[0].Trace+"-"+run.Span+"-01", <-parents, "the runtime continues the span of the call")
}

// checkTrees compares the trees with the document, or writes them to it with -update.
func checkTrees(t *testing.T, trees string) {
	t.Helper()
	const document = "tracing.md"
	text, err := docs.Files.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), "<!-- trees -->\n```\n")
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	want := before + "<!-- trees -->\n```\n" + trees + "```\n" + after
	if *update {
		require.NoError(t, os.WriteFile("../../docs/"+document, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(text), "go test ./kube/kubelet -run TestTheStartOfAPodIsATreeOfSpans -update rewrites it")
}

// With the feature gate CRIListStreaming lists are requested as streams only.
func TestListsOfTheRuntimeAreStreamed(t *testing.T) {
	const calls = "runtime.v1.RuntimeService/"
	lists := []string{calls + "ListContainers", calls + "ListPodSandbox"}
	streams := []string{calls + "StreamContainers", calls + "StreamPodSandboxes"}
	for enabled, want := range map[bool][]string{false: lists, true: streams} {
		dir := t.TempDir()
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		stop := runTraced(t, dir, provider, kubeletconfig.KubeletConfiguration{
			StaticPodPath: t.TempDir(), FeatureGates: map[string]bool{"CRIListStreaming": enabled},
			ContainerRuntimeEndpoint: serveCRI(t, func(rt internalapi.RuntimeService) internalapi.RuntimeService { return rt }),
		})
		names := func() (names []string) {
			for _, s := range spans.GetSpans() {
				if slices.Contains(slices.Concat(lists, streams), s.Name) {
					names = append(names, s.Name)
				}
			}
			slices.Sort(names)
			return slices.Compact(names)
		}
		require.Eventually(t, func() bool { return len(names()) >= 2 }, 90*time.Second, 20*time.Millisecond)
		stop()
		assert.Equal(t, want, names(), "enabled: %v", enabled)
		require.NoError(t, provider.Shutdown(t.Context()))
	}
}
