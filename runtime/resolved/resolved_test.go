package resolved_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/resolved"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// objects are the objects of the namespace shop by kind and name.
type objects struct {
	mu      sync.Mutex
	all     map[string]any
	down    error // the error of each call
	fetched int
}

func (o *objects) set(key string, object any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[string]any{}
	}
	o.all[key] = object
}

// count returns the number of fetched objects.
func (o *objects) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fetched
}

func (o *objects) get(key string) (any, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fetched++
	if o.down != nil {
		return nil, o.down
	}
	if o.all[key] == nil {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return o.all[key], nil
}

func (o *objects) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	object, err := o.get("ConfigMap/" + name)
	cm, _ := object.(*v1.ConfigMap)
	return cm, err
}

func (o *objects) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	object, err := o.get("Secret/" + name)
	secret, _ := object.(*v1.Secret)
	return secret, err
}

func (o *objects) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// issuer issues tokens with the requested lifetime.
type issuer struct {
	mu     sync.Mutex
	issued int
	down   error
	life   int64 // seconds; 0: as requested
	bound  *authenticationv1.BoundObjectReference
}

func (i *issuer) token(_ context.Context, _, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down != nil {
		return nil, i.down
	}
	i.issued++
	if i.life != 0 {
		r.Spec.ExpirationSeconds = &i.life
	}
	i.bound = r.Spec.BoundObjectRef
	r.Status.Token = fmt.Sprintf("%s-token-%d", account, i.issued)
	r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second))
	return r, nil
}

func resolverOf(t *testing.T, o *objects, i *issuer) *resolved.Resolver {
	t.Helper()
	tokens, err := token.New(token.Config{Get: i.token})
	require.NoError(t, err)
	r, err := resolved.New(resolved.Config{
		Objects: o, Tokens: tokens, HostIPs: func() []string { return []string{"10.0.0.1"} },
		DNS: podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"},
	})
	require.NoError(t, err)
	return r
}

// web returns a pod that uses everything.
func web() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1", Labels: map[string]string{"app": "web"}}}
	pod.Status.PodIPs = []v1.PodIP{{IP: "10.1.2.3"}}
	pod.Spec = v1.PodSpec{
		ServiceAccountName: "builder", DNSPolicy: v1.DNSClusterFirst,
		SecurityContext:  &v1.PodSecurityContext{FSGroup: new(int64(2000)), RunAsUser: new(int64(1000))},
		ImagePullSecrets: []v1.LocalObjectReference{{Name: "registry"}, {Name: "lost"}},
		HostAliases:      []v1.HostAlias{{IP: "10.9.9.9", Hostnames: []string{"legacy"}}},
		Containers: []v1.Container{{
			Name: "main", Image: "registry.example/web:1", Args: []string{"--level=$(LEVEL)"},
			Env: []v1.EnvVar{
				{Name: "LEVEL", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Key: "level"}}},
				{Name: "PASSWORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "db"}, Key: "password"}}},
				{Name: "IP", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			},
			VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/etc/web"}, {Name: "config", MountPath: "/level", SubPathExpr: "$(LEVEL)"}},
		}},
		Volumes: []v1.Volume{
			{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
			{Name: "keys", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{
				SecretName: "db", DefaultMode: new(int32(0o400)), Items: []v1.KeyToPath{{Key: "password", Path: "a/password", Mode: new(int32(0o600))}},
			}}},
			{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
			{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", Audience: "vault", ExpirationSeconds: new(int64(3600))}},
				{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
			}}}},
		},
	}
	return pod
}

func shop() *objects {
	o := new(objects)
	o.set("ConfigMap/settings", &v1.ConfigMap{Data: map[string]string{"level": "debug"}})
	o.set("Secret/db", &v1.Secret{Data: map[string][]byte{"password": []byte("hunter2hunter2")}})
	auth := base64.StdEncoding.EncodeToString([]byte("me:letmein"))
	o.set("Secret/registry", &v1.Secret{Type: v1.SecretTypeDockerConfigJson, Data: map[string][]byte{
		v1.DockerConfigJsonKey: []byte(`{"auths":{"registry.example":{"auth":"` + auth + `"}}}`),
	}})
	return o
}

// show returns "path mode gid data" of the files.
func show(files []runtime.File) (lines []string) {
	for _, f := range files {
		gid := int64(-1)
		if f.GID != nil {
			gid = *f.GID
		}
		lines = append(lines, fmt.Sprint(f.Path, " ", f.Mode.String(), " ", gid, " ", string(f.Data)))
	}
	return lines
}

func TestAPodIsResolvedAsTheKubeletDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, issue := time.Now(), new(issuer)
		p, err := resolverOf(t, shop(), issue).Resolve(t.Context(), web())
		require.NoError(t, err)

		c := p.Container("main")
		require.NoError(t, c.Err)
		env := map[string]string{}
		for _, v := range c.Env {
			env[v.Name] = v.Value
		}
		assert.Equal(t, map[string]string{"LEVEL": "debug", "PASSWORD": "hunter2hunter2", "IP": "10.1.2.3"}, env)
		assert.Equal(t, []string{"--level=debug"}, c.Args)
		assert.Equal(t, []resolved.Mount{{Volume: "config", Path: "/etc/web"}, {Volume: "config", Path: "/level", SubPath: "debug"}}, c.Mounts)
		require.Len(t, c.Credentials, 1)
		assert.Equal(t, "me", c.Credentials[0].Username)
		assert.Equal(t, "letmein", c.Credentials[0].Password)

		// The group of the pod reads everything; the token belongs to the common user.
		assert.Equal(t, []string{"level -rw-r--r-- 2000 debug"}, show(p.Volume("config").Files))
		assert.Equal(t, []string{"a/password -rw-r----- 2000 hunter2hunter2"}, show(p.Volume("keys").Files))
		assert.Nil(t, p.Volume("scratch"))
		assert.Equal(t, []string{`labels -rw-r--r-- 2000 app="web"`, "token -rw-r----- 2000 builder-token-1"}, show(p.Volume("token").Files))
		assert.Equal(t, int64(1000), *p.Volume("token").Files[1].UID)
		assert.Equal(t, begun.Add(time.Hour), p.Volume("token").Expiration)
		assert.WithinRange(t, p.RefreshAt, begun.Add(48*time.Minute-10*time.Second), begun.Add(48*time.Minute))
		assert.Equal(t, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1"}, issue.bound)

		assert.Equal(t, "web", p.Hostname)
		assert.Contains(t, p.Hosts, "10.1.2.3\tweb\n")
		assert.Contains(t, p.Hosts, "10.9.9.9\tlegacy\n")
		assert.Equal(t, resolved.DNS{
			Servers: []string{"10.96.0.10"}, Searches: []string{"shop.svc.cluster.local", "svc.cluster.local", "cluster.local"}, Options: []string{"ndots:5"},
		}, p.DNS)
		assert.Equal(t, []string{"Unable to retrieve image pull secret lost; attempting to pull the image may not succeed."}, p.Warnings)
	})
}

func TestAMissingObjectStopsItsContainerOrItsPod(t *testing.T) {
	o, pod := shop(), web()
	r := resolverOf(t, o, new(issuer))
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "sad", EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "nope"}}}}})
	p, err := r.Resolve(t.Context(), pod)
	require.NoError(t, err)
	assert.EqualError(t, p.Container("sad").Err, `secret "nope" not found`)
	assert.Nil(t, p.Container("sad").Env)
	assert.NoError(t, p.Container("main").Err)

	o.set("ConfigMap/settings", nil)
	_, err = r.Resolve(t.Context(), pod)
	assert.ErrorContains(t, err, `resolved: volume "config": `)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestValuesAreHiddenInTexts(t *testing.T) {
	p, err := resolverOf(t, shop(), new(issuer)).Resolve(t.Context(), web())
	require.NoError(t, err)
	var out bytes.Buffer
	for _, v := range []any{p, *p, p.Containers, p.Containers[0], p.Containers[0].Env, p.Containers[0].Env[1], p.Containers[0].Credentials, p.Volumes, p.Volumes[1], p.Volumes[1].Files, p.Volumes[2].Files[1]} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("value", "v", v)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("value", "pod", p, "container", p.Containers[0], "var", p.Containers[0].Env[1], "volume", p.Volumes[1], "file", p.Volumes[1].Files[0])
	for _, secret := range []string{"hunter2", "letmein", "builder-token", fmt.Sprintf("%x", "hunter2"), fmt.Sprint([]byte("hunter2"))[1:10], base64.StdEncoding.EncodeToString([]byte("hunter2hunter2"))} {
		assert.NotContains(t, out.String(), secret)
	}
	assert.Contains(t, out.String(), "a/password (-rw-r-----, 14 bytes)")
}

// followed runs Follow and returns the values so far.
func followed(t *testing.T, r *resolved.Resolver, pod *v1.Pod) func() (values []*resolved.Pod, errs []error) {
	var mu sync.Mutex
	var values []*resolved.Pod
	var errs []error
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p, err := range r.Follow(ctx, pod) {
			mu.Lock()
			if err != nil {
				errs = append(errs, err)
			} else {
				values = append(values, p)
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() ([]*resolved.Pod, []error) {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return values, errs
	}
}

func TestTokensAreRotatedAtTheKubeletsTime(t *testing.T) {
	for _, c := range []struct {
		life, due time.Duration
	}{{time.Hour, 48 * time.Minute}, {10 * time.Minute, 8 * time.Minute}, {100 * time.Hour, 24 * time.Hour}} {
		t.Run(c.life.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, issue := shop(), &issuer{life: int64(c.life / time.Second)}
				values := followed(t, resolverOf(t, o, issue), web())
				got, _ := values()
				require.Len(t, got, 1)
				fetched := o.count()
				time.Sleep(c.due - 11*time.Second) // the jitter is at most 10 s
				got, _ = values()
				require.Len(t, got, 1)
				assert.Equal(t, fetched, o.count(), "objects are not polled")
				time.Sleep(11 * time.Second)
				got, errs := values()
				require.Len(t, got, 2)
				require.Empty(t, errs)
				assert.Equal(t, "builder-token-2", string(got[1].Volume("token").Files[1].Data))
				assert.Equal(t, got[0].Volume("keys").Files, got[1].Volume("keys").Files)
			})
		})
	}
}

// The API server is away when the token is due: the old token remains until it expires, then there is an error, and
// the replacement follows soon after the server is back.
func TestATokenIsReplacedAfterTheServerWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issue := new(issuer)
		values := followed(t, resolverOf(t, shop(), issue), web())
		values()
		issue.mu.Lock()
		issue.down = errors.New("connection refused")
		issue.mu.Unlock()
		time.Sleep(59 * time.Minute)
		got, errs := values()
		assert.Len(t, got, 1)
		assert.Empty(t, errs)
		time.Sleep(2 * time.Minute)
		_, errs = values()
		require.NotEmpty(t, errs)
		assert.ErrorContains(t, errs[0], "connection refused")
		assert.NotContains(t, errs[0].Error(), "builder-token")
		issue.mu.Lock()
		issue.down = nil
		issue.mu.Unlock()
		time.Sleep(2 * time.Minute)
		got, _ = values()
		require.Len(t, got, 2)
		assert.Equal(t, "builder-token-2", string(got[1].Volume("token").Files[1].Data))
	})
}

func TestChangedObjectsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shop()
		r := resolverOf(t, o, new(issuer))
		values := followed(t, r, web())
		values()
		o.set("ConfigMap/settings", &v1.ConfigMap{Data: map[string]string{"level": "info"}})
		r.ObjectChanged(payload.KindConfigMap, "shop", "settings")
		got, _ := values()
		require.Len(t, got, 2)
		assert.Equal(t, []string{"level -rw-r--r-- 2000 info"}, show(got[1].Volume("config").Files))
		assert.Equal(t, []string{"--level=info"}, got[1].Container("main").Args)

		fetched := o.count()
		r.ObjectChanged(payload.KindConfigMap, "shop", "other")
		r.ObjectChanged(payload.KindSecret, "elsewhere", "db")
		got, _ = values()
		assert.Len(t, got, 2)
		assert.Equal(t, fetched, o.count(), "other objects")
		r.ObjectChanged(payload.KindSecret, "shop", "db") // the same content
		got, _ = values()
		assert.Len(t, got, 2)
		assert.Greater(t, o.count(), fetched)
	})
}

// A missing object is an error once per attempt, and its creation ends the wait at once.
func TestAnObjectThatIsCreatedLaterIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shop()
		o.set("Secret/db", nil)
		r := resolverOf(t, o, new(issuer))
		values := followed(t, r, web())
		got, errs := values()
		assert.Empty(t, got)
		assert.Len(t, errs, 1)
		time.Sleep(time.Hour)
		_, errs = values()
		assert.Len(t, errs, 36, "after 0, 1, 2, 4 … 64, and then 120 s")
		o.set("Secret/db", &v1.Secret{Data: map[string][]byte{"password": []byte("new")}})
		r.ObjectChanged(payload.KindSecret, "shop", "db")
		got, _ = values()
		assert.Len(t, got, 1)
	})
}

// The volumes of an agent: content, and the pods to sync after a change or when a token is due.
func TestMountedVolumesAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := shop()
		r := resolverOf(t, o, new(issuer))
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan types.UID, 10)
		go func() { assert.NoError(t, r.Watch(ctx, func(uid types.UID) { changed <- uid })) }()
		pod := web()
		mounted, err := r.Mount(ctx, pod)
		require.NoError(t, err)
		assert.Len(t, mounted, 3)
		assert.Equal(t, "debug", string(mounted["config"].Content.Files[0].Data))
		assert.Empty(t, mounted["config"].Path)
		synctest.Wait()
		assert.Empty(t, changed)

		r.ObjectChanged(payload.KindConfigMap, "shop", "settings")
		assert.Equal(t, pod.UID, <-changed)
		begun := time.Now()
		assert.Equal(t, pod.UID, <-changed) // the token
		assert.InDelta(t, 48*time.Minute, time.Since(begun), float64(11*time.Second))
		mounted, err = r.Mount(ctx, pod)
		require.NoError(t, err)
		assert.Equal(t, "builder-token-2", string(mounted["token"].Content.Files[1].Data))

		require.NoError(t, r.Unmount(ctx, pod))
		r.ObjectChanged(payload.KindConfigMap, "shop", "settings")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Empty(t, changed)
		cancel()
	})
}

func TestNewNamesTheInvalidField(t *testing.T) {
	_, err := resolved.New(resolved.Config{})
	assert.EqualError(t, err, "resolved: Config.Objects is nil")
	_, err = resolved.New(resolved.Config{Objects: new(objects), DNS: podconfig.DNS{ClusterDNS: []string{"a\nb"}}})
	assert.ErrorContains(t, err, "resolved: Config.DNS: ")
}
