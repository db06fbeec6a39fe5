package cri_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A blind CRI runtime fails PodSandboxStatus.
type blind struct{ *fakeCRI }

func (blind) PodSandboxStatus(context.Context, string, bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	return nil, status.Error(codes.Unknown, "no such netns")
}

// The reasons that kubectl shows are exactly the kubelet's: those of events (section
// 11) and those of waiting containers (rt-77). Reasons that package status sets for
// waiting containers are tested there.
func TestEveryReasonIsGivenAsTheKubeletDoes(t *testing.T) {
	unknown := func(text string) error { return status.Error(codes.Unknown, text) }
	absent := func(policy v1.PullPolicy, registry error) func(*fakeCRI, *v1.Pod) {
		return func(f *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = "img:2", policy
			f.pull = func(context.Context, string) error { return registry }
		}
	}
	broken := func(op, text string) func(*fakeCRI, *v1.Pod) {
		return func(f *fakeCRI, _ *v1.Pod) { f.before = failing(9, op, unknown(text)) }
	}
	postStart := func(_ *fakeCRI, p *v1.Pod) {
		p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{}}
	}
	crashing := func(n int) func(*testing.T, *cri.Runtime, *fakeCRI, *v1.Pod) runtime.SyncResult {
		return func(t *testing.T, rt *cri.Runtime, f *fakeCRI, pod *v1.Pod) (res runtime.SyncResult) {
			for range n {
				res, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				if len(f.running()) > 0 {
					f.exits("web", 1)
				}
			}
			return res
		}
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	u, err := url.Parse(plain.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)

	const web = " spec.containers{web}: "
	rows := []struct {
		name    string
		cfg     cri.Config
		over    func(*fakeCRI) internalapi.RuntimeService
		arrange func(*fakeCRI, *v1.Pod)
		act     func(*testing.T, *cri.Runtime, *fakeCRI, *v1.Pod) runtime.SyncResult // nil: one sync
		waits   string                                                               // the reason of the last action
		events  []string                                                             // among those recorded, in this order; … is any end
	}{
		{name: "started", events: []string{
			"Normal Pulled" + web + `Container image "img:1" already present on machine and can be accessed by the pod`,
			"Normal Created" + web + "Container created", "Normal Started" + web + "Container started",
		}},
		{name: "pulled", arrange: absent(v1.PullIfNotPresent, nil), events: []string{
			"Normal Pulling" + web + `Pulling image "img:2"`, "Normal Pulled" + web + `Successfully pulled image "img:2" in …`,
		}},
		{name: "not pulled", arrange: absent(v1.PullIfNotPresent, unknown("no such host")), waits: "ErrImagePull", events: []string{
			"Warning Failed" + web + `Failed to pull image "img:2": no such host`, "Warning Failed" + web + "Error: ErrImagePull",
		}},
		{name: "not pulled again", arrange: absent(v1.PullIfNotPresent, unknown("no such host")), act: crashing(2), waits: "ImagePullBackOff", events: []string{
			"Normal BackOff" + web + `Back-off pulling image "img:2"`, "Warning Failed" + web + "Error: ImagePullBackOff",
		}},
		{name: "never pulled", arrange: absent(v1.PullNever, nil), waits: "ErrImageNeverPull", events: []string{
			"Warning ErrImageNeverPull" + web + `Container image "img:2" is not present with pull policy of Never`,
			"Warning Failed" + web + "Error: ErrImageNeverPull",
		}},
		{name: "no registry", arrange: absent(v1.PullAlways, unknown("RegistryUnavailable: 503")), waits: "RegistryUnavailable", events: []string{
			"Warning Failed" + web + "Error: RegistryUnavailable",
		}},
		{name: "no signature", arrange: absent(v1.PullAlways, unknown("SignatureValidationFailed: no")), waits: "SignatureValidationFailed", events: []string{
			"Warning Failed" + web + "Error: SignatureValidationFailed",
		}},
		{name: "no name", arrange: func(_ *fakeCRI, p *v1.Pod) { p.Spec.Containers[0].Image = "Not A Name" }, waits: "InvalidImageName", events: []string{
			"Warning InspectFailed" + web + `Failed to apply default image tag "Not A Name": couldn't parse image name "Not A Name": …`,
			"Warning Failed" + web + "Error: InvalidImageName",
		}},
		{name: "not inspected", arrange: broken("ImageStatus", "disk"), waits: "ImageInspectError", events: []string{
			"Warning InspectFailed" + web + `Failed to inspect image "img:1": rpc error: code = Unknown desc = disk`, "Warning Failed" + web + "Error: ImageInspectError",
		}},
		{name: "no pull secret", cfg: cri.Config{Providers: cri.Providers{Objects: vault{}}}, arrange: func(f *fakeCRI, p *v1.Pod) {
			absent(v1.PullAlways, nil)(f, p)
			p.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "gone"}}
		}, events: []string{
			"Warning FailedToRetrieveImagePullSecret : Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed.",
		}},
		{name: "no configuration", arrange: func(_ *fakeCRI, p *v1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = new(true) },
			waits: "CreateContainerConfigError", events: []string{
				"Warning Failed" + web + `Error: container has runAsNonRoot and image will run as root (pod: "web_prod(u-1)", container: web)`,
			}},
		{name: "a manager refuses", cfg: cri.Config{Providers: cri.Providers{Managers: &managers{fail: "create web"}}}, waits: "PreCreateHookError", events: []string{
			"Warning Failed" + web + "Internal PreCreateContainer hook failed: no CPU is free",
		}},
		{name: "a manager refuses late", cfg: cri.Config{Providers: cri.Providers{Managers: &managers{fail: "start web"}}}, waits: "PreStartHookError", events: []string{
			"Normal Created" + web + "Container created", "Warning Failed" + web + "Internal PreStartContainer hook failed: no CPU is free",
		}},
		{name: "not created", arrange: broken("CreateContainer", "no space left"), waits: "CreateContainerError", events: []string{
			"Warning Failed" + web + "Error: no space left",
		}},
		{name: "not started", arrange: broken("StartContainer", "no such file"), waits: "RunContainerError", events: []string{
			"Warning Failed" + web + "Error: no such file",
		}},
		{name: "crashed twice", act: crashing(3), waits: "CrashLoopBackOff", events: []string{
			"Warning BackOff" + web + "Back-off restarting failed container web in pod web_prod(u-1)",
		}},
		{name: "a hook fails at the start", arrange: postStart, waits: "PostStartHookError", events: []string{
			"Warning FailedPostStartHook" + web + "PostStartHook failed", "Normal Killing" + web + "FailedPostStartHook",
		}},
		{name: "a hook fails at the end", arrange: func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{}}
		}, act: func(t *testing.T, rt *cri.Runtime, _ *fakeCRI, pod *v1.Pod) runtime.SyncResult {
			syncs(t, rt, pod)
			require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
			return runtime.SyncResult{}
		}, events: []string{"Normal Killing" + web + "Stopping container web", "Warning FailedPreStopHook" + web + "PreStopHook failed"}},
		{name: "a hook without TLS", arrange: func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{
				Host: "127.0.0.1", Port: intstr.FromInt(port), Scheme: v1.URISchemeHTTPS,
			}}}
		}, events: []string{"Warning LifecycleHTTPFallback" + web + "request to HTTPS lifecycle hook of container web got HTTP response, retry with HTTP succeeded"}},
		{name: "another sandbox", act: func(t *testing.T, rt *cri.Runtime, f *fakeCRI, pod *v1.Pod) runtime.SyncResult {
			syncs(t, rt, pod)
			require.NoError(t, f.StopPodSandbox(t.Context(), f.sandboxes()[0].ID))
			return syncs(t, rt, pod)
		}, events: []string{"Normal SandboxChanged : Pod sandbox changed, it will be killed and re-created."}},
		{name: "no sandbox", arrange: broken("RunPodSandbox", "no IP"), waits: "CreatePodSandboxError", events: []string{
			"Warning FailedCreatePodSandBox : Failed to create pod sandbox: no IP",
		}},
		{name: "no devices", cfg: cri.Config{Providers: cri.Providers{Managers: &managers{fail: "prepare"}}}, waits: "CreatePodSandboxError", events: []string{
			"Warning FailedPrepareDynamicResources : Failed to prepare dynamic resources: no CPU is free",
		}},
		{name: "a sandbox without a status rt-25", over: func(f *fakeCRI) internalapi.RuntimeService { return blind{f} },
			act: func(t *testing.T, rt *cri.Runtime, f *fakeCRI, pod *v1.Pod) runtime.SyncResult {
				res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
				require.Error(t, err)
				assert.Empty(t, f.containers(), "no container is created in it")
				return res
			}, waits: "ConfigPodSandboxError", events: []string{"Warning FailedPodSandBoxStatus : Unable to get pod sandbox status: no such netns"}},
	}
	given, waited := map[string]bool{}, map[string]bool{}
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			f, seen := newFake(), new(events)
			f.has("img:1")
			cfg := tc.cfg
			cfg.Name, cfg.Runtime, cfg.Images, cfg.Record = "fake", f, f, seen.record
			if tc.over != nil {
				cfg.Runtime = tc.over(f)
			}
			rt := newRuntime(t, cfg)
			pod := podOf(container("web"))
			if tc.arrange != nil {
				tc.arrange(f, pod)
			}
			if tc.act == nil {
				tc.act = func(t *testing.T, rt *cri.Runtime, _ *fakeCRI, pod *v1.Pod) runtime.SyncResult {
					res, _ := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
					return res
				}
			}
			res := tc.act(t, rt, f, pod)
			reason := ""
			if n := len(res.Actions); n > 0 {
				reason = res.Actions[n-1].Reason
			}
			assert.Equal(t, tc.waits, reason)
			waited[reason] = true
			rest := seen.take()
			for _, want := range tc.events {
				i := slices.IndexFunc(rest, func(line string) bool {
					begin, more := strings.CutSuffix(want, "…")
					return line == want || more && strings.HasPrefix(line, begin)
				})
				require.GreaterOrEqual(t, i, 0, "%s\nis not among\n%s", want, strings.Join(rest, "\n"))
				rest = rest[i+1:]
				kind, _, _ := strings.Cut(want[strings.Index(want, " ")+1:], " ")
				given[strings.Fields(want)[0]+" "+kind] = true
			}
		})
	}
	assert.Equal(t, []string{
		"Normal BackOff", "Normal Created", "Normal Killing", "Normal Pulled", "Normal Pulling", "Normal SandboxChanged", "Normal Started",
		"Warning BackOff", "Warning ErrImageNeverPull", "Warning Failed", "Warning FailedCreatePodSandBox", "Warning FailedPodSandBoxStatus",
		"Warning FailedPostStartHook", "Warning FailedPreStopHook", "Warning FailedPrepareDynamicResources",
		"Warning FailedToRetrieveImagePullSecret", "Warning InspectFailed", "Warning LifecycleHTTPFallback",
	}, slices.Sorted(maps.Keys(given)))
	for _, want := range []string{
		"CrashLoopBackOff", "CreateContainerConfigError", "PreCreateHookError", "CreateContainerError", "PreStartHookError",
		"RunContainerError", "PostStartHookError", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "ImageInspectError",
		"InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed",
	} {
		assert.True(t, waited[want], want)
	}
}
