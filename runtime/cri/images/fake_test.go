package images_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// A fakeService is the image service of a CRI runtime, with a registry: an image exists
// in the registry if a user may pull it.
type fakeService struct {
	internalapi.ImageManagerService

	mu      sync.Mutex
	local   map[string]*runtimeapi.Image
	may     map[string][]string // user names that may pull an image; "" allows anonymous pulls
	pulls   []string            // "user image", in the order they began
	at      []time.Time         // when
	specs   []*runtimeapi.ImageSpec
	looks   int
	looked  []string // images that were looked up
	running int
	most    int // pulls at once

	takes   time.Duration // a pull, which ends early with its context
	fails   error         // of every pull
	loses   bool          // the answer of a pull that worked
	vanish  bool          // images after their pull
	lookErr error
	block   chan struct{} // looks wait for it, or their context
}

func (f *fakeService) has(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hasLocked(names...)
}

func (f *fakeService) hasLocked(names ...string) {
	if f.local == nil {
		f.local = map[string]*runtimeapi.Image{}
	}
	for _, name := range names {
		f.local[name] = &runtimeapi.Image{Id: "sha256:" + name, Size: 7, Uid: &runtimeapi.Int64Value{Value: 5}}
	}
}

func (f *fakeService) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return nil, status.Error(codes.Canceled, "called off")
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looks++
	f.looked = append(f.looked, spec.Image)
	if f.lookErr != nil {
		return nil, f.lookErr
	}
	return &runtimeapi.ImageStatusResponse{Image: f.local[spec.Image]}, nil
}

func (f *fakeService) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	f.mu.Lock()
	f.pulls, f.at, f.specs = append(f.pulls, auth.GetUsername()+" "+spec.Image), append(f.at, time.Now()), append(f.specs, spec)
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	if f.takes > 0 {
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	switch may, ok := f.may[spec.Image]; {
	case ctx.Err() != nil:
		return "", status.FromContextError(ctx.Err()).Err()
	case f.fails != nil:
		return "", f.fails
	case !ok:
		return "", status.Errorf(codes.NotFound, "%s: not found", spec.Image)
	case !slices.Contains(may, "") && !slices.Contains(may, auth.GetUsername()):
		return "", status.Errorf(codes.Unknown, "%s: %q is unauthorized", spec.Image, auth.GetUsername())
	}
	if !f.vanish {
		f.hasLocked(spec.Image)
	}
	if f.loses {
		return "", status.Error(codes.Unavailable, "connection lost")
	}
	return "sha256:" + spec.Image, nil
}

func (f *fakeService) pulled() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	pulls := f.pulls
	f.pulls = nil
	return pulls
}

// under returns the current and the maximum number of concurrent pulls.
func (f *fakeService) under() (now, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.most
}

// credentials are the credentials of pods, by name.
type credentials struct {
	mu    sync.Mutex
	of    map[string][]images.Credential
	err   error
	looks int
	takes time.Duration
}

func (c *credentials) Lookup(ctx context.Context, _ string, pod *v1.Pod) ([]images.Credential, error) {
	if c.takes > 0 {
		select {
		case <-time.After(c.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return c.of[pod.Name], c.err
}

func (c *credentials) set(pod string, creds ...images.Credential) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string][]images.Credential{}
	}
	c.of[pod] = creds
}

// secret returns the credential of a user from a secret with the given content hash.
func secret(name, user, hash string) images.Credential {
	return images.Credential{
		Auth: &runtimeapi.AuthConfig{Username: user, Password: "pw"}, Hash: hash,
		Secret: &images.Object{Namespace: "prod", Name: name, UID: "uid-" + name},
	}
}

func account(name, user string) images.Credential {
	return images.Credential{
		Auth:           &runtimeapi.AuthConfig{Username: user, Password: "pw"},
		ServiceAccount: &images.Object{Namespace: "prod", Name: name, UID: "uid-" + name},
	}
}

func nodeWide(user string) images.Credential {
	return images.Credential{Auth: &runtimeapi.AuthConfig{Username: user, Password: "pw"}, Hash: "h-" + user}
}

func podOf(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod", UID: types.UID("uid-" + name), Annotations: map[string]string{"a": "b"}}}
}

// events records the events of requests.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

// of returns a request for pod that sends its events to e.
func (e *events) of(pod *v1.Pod, image string, policy v1.PullPolicy) images.Request {
	return images.Request{Pod: pod, Image: image, PullPolicy: policy, Event: func(eventType, reason, message string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.list = append(e.list, fmt.Sprintf("%s %s %s", eventType, reason, message))
	}}
}

func newManager(t *testing.T, cfg images.Config) *images.Manager {
	t.Helper()
	m, err := images.New(cfg)
	require.NoError(t, err)
	return m
}

// why returns the reason of an error, or "" for nil.
func why(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var failed *images.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, failed.Message, err.Error())
	return failed.Reason
}
