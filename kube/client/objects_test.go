package client_test

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

var (
	_ cri.Objects      = (*client.Objects)(nil)
	_ pipeline.Objects = (*client.Objects)(nil)
)

// A shelf is an Objects with all it needs.
type shelf struct {
	*client.Objects
	api    *apitest.Server
	faults *switchboard

	mu      sync.Mutex
	changes []string
}

func newShelf(t *testing.T, cfg client.ObjectsConfig) *shelf {
	t.Helper()
	s := &shelf{api: new(apitest.Server), faults: new(switchboard)}
	s.api.Fault = s.faults.fault
	cfg.Client = connect(t, s.api).API
	if cfg.Changed == nil {
		cfg.Changed = func(kind, namespace, name string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes = append(s.changes, kind+" "+namespace+"/"+name)
		}
	}
	var err error
	s.Objects, err = client.NewObjects(cfg)
	require.NoError(t, err)
	running(t, s.Run)
	return s
}

func (s *shelf) changed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.changes
	s.changes = nil
	return out
}

func newSecret(name, value string) *v1.Secret {
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name}, Data: map[string][]byte{"key": []byte(value)}}
}

// userOf returns a pod with the secret in a volume.
func userOf(uid, secret string) *v1.Pod {
	pod := newPod("pod-" + uid)
	pod.UID = types.UID(uid)
	pod.Spec.EnableServiceLinks = new(false)
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: secret}}}}
	return pod
}

func value(t *testing.T, s *shelf, name string) string {
	t.Helper()
	secret, err := s.Secret(t.Context(), "prod", name)
	require.NoError(t, err)
	return string(secret.Data["key"])
}

// watchesOf counts the watches, except that of the service kubernetes.
func watchesOf(api *apitest.Server) int { return api.Watches("secrets") + api.Watches("configmaps") }

// virtual-kubelet has a cluster-wide informer for all Secrets, ConfigMaps and
// Services.
func TestOnlyReferencedObjectsAreRead(t *testing.T) { // oc-2
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		for i := range 1000 {
			s.api.Put(newSecret(fmt.Sprintf("s-%d", i), "x"))
		}
		pod := newPod("web")
		pod.UID = "web"
		ref := func(name string) *v1.LocalObjectReference { return &v1.LocalObjectReference{Name: name} }
		env := func(secret, configMap string) v1.Container {
			return v1.Container{Name: secret,
				Env: []v1.EnvVar{
					{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: *ref(secret)}}},
					{Name: "B", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: *ref(configMap)}}},
					{Name: "C", Value: "x"},
				},
				EnvFrom: []v1.EnvFromSource{
					{SecretRef: &v1.SecretEnvSource{LocalObjectReference: *ref(secret + "-from")}},
					{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: *ref(configMap + "-from")}},
				},
			}
		}
		pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "pull"}, {}}
		pod.Spec.InitContainers = []v1.Container{env("init-s", "init-c")}
		pod.Spec.Containers = []v1.Container{env("main-s", "main-c")}
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon(env("debug-s", "debug-c"))}}
		pod.Spec.Volumes = []v1.Volume{
			{VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "vol-s"}}},
			{VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: *ref("vol-c")}}},
			{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{Secret: &v1.SecretProjection{LocalObjectReference: *ref("proj-s")}}, {ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: *ref("proj-c")}},
				{DownwardAPI: &v1.DownwardAPIProjection{}},
			}}}},
			{VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "csi.example.com", NodePublishSecretRef: ref("csi-s")}}},
			{VolumeSource: v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{SecretName: "azure-s"}}},
			{VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{SecretRef: ref("iscsi-s")}}},
			{VolumeSource: v1.VolumeSource{RBD: &v1.RBDVolumeSource{SecretRef: ref("rbd-s")}}},
			{VolumeSource: v1.VolumeSource{CephFS: &v1.CephFSVolumeSource{SecretRef: ref("ceph-s")}}},
			{VolumeSource: v1.VolumeSource{FlexVolume: &v1.FlexVolumeSource{SecretRef: ref("flex-s")}}},
			{VolumeSource: v1.VolumeSource{ScaleIO: &v1.ScaleIOVolumeSource{SecretRef: ref("sio-s")}}},
			{VolumeSource: v1.VolumeSource{StorageOS: &v1.StorageOSVolumeSource{SecretRef: ref("sos-s")}}},
			{VolumeSource: v1.VolumeSource{Cinder: &v1.CinderVolumeSource{SecretRef: ref("cinder-s")}}},
			{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		}
		pod.Spec.RuntimeClassName = new("gvisor")
		s.Register(pod)
		s.Register(pod)
		synctest.Wait()

		secrets := []string{"azure-s", "ceph-s", "cinder-s", "csi-s", "debug-s", "debug-s-from", "flex-s", "init-s", "init-s-from", "iscsi-s", "main-s", "main-s-from", "proj-s", "pull", "rbd-s", "sio-s", "sos-s", "vol-s"}
		configMaps := []string{"debug-c", "debug-c-from", "init-c", "init-c-from", "main-c", "main-c-from", "proj-c", "vol-c"}
		var want []string
		for _, name := range secrets {
			want = append(want, "watch secrets prod metadata.name="+name)
		}
		for _, name := range configMaps {
			want = append(want, "watch configmaps prod metadata.name="+name)
		}
		want = append(want, "watch services default metadata.name=kubernetes", "watch services prod",
			"watch csidrivers metadata.name=csi.example.com", "watch runtimeclasses metadata.name=gvisor")
		var got []string
		for _, c := range s.api.Calls() {
			got = append(got, c.String())
		}
		assert.ElementsMatch(t, want, got)

		// A second pod costs nothing more, and after both are removed no watch
		// remains.
		second := pod.DeepCopy()
		second.UID = "second"
		s.Register(second)
		synctest.Wait()
		assert.Len(t, s.api.Calls(), len(want))
		s.Unregister("web")
		pass(2 * time.Minute)
		assert.Equal(t, len(want), s.api.Watches())
		s.Unregister("second")
		s.Unregister("never known")
		pass(59 * time.Second)
		assert.Equal(t, len(want), s.api.Watches(), "a pod may return")
		pass(2 * time.Second)
		assert.Zero(t, s.api.Watches())
	})
}

func TestAReadIsFreeAndFresh(t *testing.T) { // oc-3
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(newSecret("db", "one"))
		s.Register(userOf("a", "db"))
		assert.Equal(t, "one", value(t, s, "db"))
		synctest.Wait()
		s.api.Forget()
		for range 1000 {
			assert.Equal(t, "one", value(t, s, "db"))
		}
		assert.Empty(t, s.changed(), "the first answer is no change")
		s.api.Put(newSecret("db", "two"))
		synctest.Wait()
		assert.Equal(t, []string{"Secret prod/db"}, s.changed())
		assert.Equal(t, "two", value(t, s, "db"))
		s.api.Remove("secrets", "prod", "db")
		synctest.Wait()
		assert.Equal(t, []string{"Secret prod/db"}, s.changed())
		_, err := s.Secret(t.Context(), "prod", "db")
		require.True(t, apierrors.IsNotFound(err), "oc-8: %v", err)
		s.api.Put(newSecret("db", "three"))
		synctest.Wait()
		assert.Equal(t, []string{"Secret prod/db"}, s.changed())
		assert.Equal(t, "three", value(t, s, "db"))
		assert.Empty(t, s.api.Calls())

		// No change is lost in a gap of the watch, and none is reported where there
		// was none.
		s.api.DropWatches()
		s.api.Compact()
		pass(time.Minute)
		assert.Empty(t, s.changed())
		s.faults.set(about("watch", apitest.Fault{Refuse: true}))
		s.api.DropWatches()
		s.api.Put(newSecret("db", "four"))
		s.api.Compact()
		pass(time.Minute)
		assert.Equal(t, "three", value(t, s, "db"), "the cached object is used while the API is away")
		s.faults.set(nil)
		pass(time.Minute)
		assert.Equal(t, []string{"Secret prod/db"}, s.changed())
		assert.Equal(t, "four", value(t, s, "db"))
	})
}

func TestAWatchIsAskedToLast(t *testing.T) { // oc-3
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(newSecret("db", "one"))
		s.Register(userOf("a", "db"))
		synctest.Wait()
		s.api.Forget()
		pass(29 * time.Minute)
		assert.Empty(t, s.api.Calls("secrets"), "30 minutes at least")
		pass(24 * time.Hour)
		assert.InDelta(t, 33, len(s.api.Calls("secrets")), 10)
		assert.Empty(t, s.changed())
	})
}

func TestAnUnregisteredObjectIsRead(t *testing.T) { // oc-4
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(newSecret("db", "one"))
		assert.Equal(t, "one", value(t, s, "db"))
		_, err := s.ConfigMap(t.Context(), "prod", "none")
		require.True(t, apierrors.IsNotFound(err))
		require.ErrorContains(t, err, `configmap "none" not found`)
		synctest.Wait() // the reader is released before the watch begins
		assert.Equal(t, 2, watchesOf(s.api))
		pass(61 * time.Second)
		assert.Zero(t, watchesOf(s.api))
	})
}

// Pods start and stop all the time: no read of an object they refer to fails because
// it is not registered.
func TestPodsThatComeAndGoAlwaysReadTheirObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		for i := range 10 {
			s.api.Put(newSecret(fmt.Sprintf("s-%d", i), "x"))
		}
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				pod := userOf(fmt.Sprintf("pod-%d", i), fmt.Sprintf("s-%d", i%10))
				time.Sleep(time.Duration(i%97) * time.Second)
				s.Register(pod)
				_, err := s.Secret(t.Context(), "prod", fmt.Sprintf("s-%d", i%10))
				assert.NoError(t, err)
				time.Sleep(time.Duration(i%13) * 10 * time.Second)
				s.Unregister(pod.UID)
				_, err = s.Secret(t.Context(), "prod", fmt.Sprintf("s-%d", i%10))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		pass(2 * time.Minute)
		assert.Zero(t, s.api.Watches())
	})
}

func TestAReadDoesNotWaitForLong(t *testing.T) { // oc-3
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.faults.set(about("watch", apitest.Fault{Hang: true}))
		begin := time.Now()
		_, err := s.Secret(t.Context(), "prod", "db")
		require.EqualError(t, err, "client: read secret prod/db: failed to sync secret cache: timed out waiting for the condition")
		assert.Equal(t, time.Second, time.Since(begin))
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		_, err = s.Secret(ctx, "prod", "db")
		require.Error(t, err)
		assert.Equal(t, 1100*time.Millisecond, time.Since(begin))
	})
}

func TestAFailedReadReturnsTheCauseAndIsNoHotLoop(t *testing.T) {
	for name, tc := range map[string]struct {
		fault apitest.Fault
		want  string
		most  float64
	}{
		"forbidden":   {apitest.Fault{Code: 403, Message: "no relationship found between node and this object"}, "no relationship found", 8},
		"partitioned": {apitest.Fault{Refuse: true}, "connection refused", 8},
		"unavailable": {apitest.Fault{Code: 503}, "Service Unavailable", 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, client.ObjectsConfig{})
				s.api.Put(newSecret("db", "one"))
				s.faults.set(func(apitest.Call) apitest.Fault { return tc.fault })
				s.Register(userOf("a", "db"))
				for i := range 6000 { // ten minutes of frequent reads
					_, err := s.Secret(t.Context(), "prod", "db")
					require.ErrorContains(t, err, tc.want)
					if i == 3000 {
						s.api.Forget()
					}
					pass(100 * time.Millisecond)
				}
				perMinute := float64(len(s.api.Calls("secrets"))) / 5
				t.Logf("%.1f calls a minute", perMinute)
				assert.LessOrEqual(t, perMinute, tc.most)
				s.faults.set(nil)
				pass(time.Minute)
				assert.Equal(t, "one", value(t, s, "db"))
				assert.Equal(t, []string{"Secret prod/db"}, s.changed(), "the waiting pods are notified")
			})
		})
	}
}

func TestAnImmutableObjectIsNotWatched(t *testing.T) { // oc-5
	for _, strategy := range []client.Strategy{client.Watch, client.Cache} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf(t, client.ObjectsConfig{Strategy: strategy})
			secret := newSecret("db", "one")
			secret.Immutable = new(true)
			s.api.Put(secret)
			s.Register(userOf("a", "db"))
			assert.Equal(t, "one", value(t, s, "db"))
			synctest.Wait()
			assert.Zero(t, watchesOf(s.api))
			s.api.Forget()
			s.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} })
			pass(24 * time.Hour)
			assert.Equal(t, "one", value(t, s, "db"))
			assert.Empty(t, s.api.Calls("secrets"))
			s.Register(userOf("b", "db"))
			assert.Equal(t, "one", value(t, s, "db"))

			// For ever is as long as a pod refers to it.
			s.Unregister("a")
			s.Unregister("b")
			pass(2 * time.Minute)
			s.faults.set(nil)
			s.api.Put(newSecret("db", "two"))
			assert.Equal(t, "two", value(t, s, "db"))
		})
	}
}

func TestUnreadObjectsAreNotWatchedForLong(t *testing.T) { // oc-6
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(newSecret("db", "one"), newSecret("mounted", "one"))
		pod := userOf("a", "mounted")
		pod.Spec.ImagePullSecrets = []v1.LocalObjectReference{{Name: "db"}}
		s.Register(pod)
		assert.Equal(t, "one", value(t, s, "db"))
		pass(4 * time.Minute)
		assert.Equal(t, 2, watchesOf(s.api))
		pass(61 * time.Second)
		assert.Equal(t, 1, s.api.Watches("secrets"), "an object of a volume is still watched")
		s.api.Put(newSecret("db", "two"), newSecret("mounted", "two"))
		synctest.Wait()
		assert.Equal(t, []string{"Secret prod/mounted"}, s.changed())
		assert.Equal(t, "two", value(t, s, "db"), "and it is fresh when it is read again")
		synctest.Wait() // the reader is released before the change is reported
		assert.Equal(t, 2, watchesOf(s.api))
		assert.Equal(t, []string{"Secret prod/db"}, s.changed())
	})
}

func TestARegistrationReplacesTheOneBefore(t *testing.T) { // oc-2
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.Register(userOf("a", "one"))
		synctest.Wait()
		s.Register(userOf("a", "two"))
		pass(2 * time.Minute)
		assert.Len(t, s.api.Calls("secrets"), 2)
		assert.Equal(t, 1, watchesOf(s.api))
	})
}

func TestKindsThatAreReadWithoutAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		s.api.Put(
			&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "data"}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}},
			&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}},
			&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}},
			&certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: "example.com/s", TrustBundle: "PEM b"}},
			&certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: "example.com/s", TrustBundle: "PEM a"}},
			&certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: "example.com/t", TrustBundle: "PEM c"}},
		)
		claim, err := s.PersistentVolumeClaim(t.Context(), "prod", "data")
		require.NoError(t, err)
		volume, err := s.PersistentVolume(t.Context(), claim.Spec.VolumeName)
		require.NoError(t, err)
		assert.Equal(t, "pv-1", volume.Name)
		driver, err := s.CSIDriver(t.Context(), "csi.example.com")
		require.NoError(t, err)
		assert.Equal(t, "csi.example.com", driver.Name)

		pem, err := s.ClusterTrustBundle(t.Context(), "b")
		require.NoError(t, err)
		assert.Equal(t, "PEM b", pem)
		pems, err := s.ClusterTrustBundles(t.Context(), "example.com/s", labels.Everything())
		require.NoError(t, err)
		assert.Equal(t, []string{"PEM a", "PEM b"}, pems)
		pems, err = s.ClusterTrustBundles(t.Context(), "example.com/none", labels.Everything())
		require.NoError(t, err)
		assert.Empty(t, pems)

		for name, read := range map[string]func() error{
			"client: read persistent volume claim prod/none": func() error { _, err := s.PersistentVolumeClaim(t.Context(), "prod", "none"); return err },
			"client: read persistent volume none":            func() error { _, err := s.PersistentVolume(t.Context(), "none"); return err },
			`csidriver.storage.k8s.io "none" not found`:      func() error { _, err := s.CSIDriver(t.Context(), "none"); return err },
			`runtimeclass.node.k8s.io "none" not found`:      func() error { _, err := s.RuntimeClass("none"); return err },
			"client: read cluster trust bundle none":         func() error { _, err := s.ClusterTrustBundle(t.Context(), "none"); return err },
		} {
			err := read()
			require.True(t, apierrors.IsNotFound(err), "oc-8: %v", err)
			require.ErrorContains(t, err, name)
			require.NotErrorIs(t, err, fs.ErrExist)
		}
	})
}

func TestATokenIsRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{})
		answer, err := s.Token(t.Context(), "prod", "builder", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{"vault"}, ExpirationSeconds: new(int64(600)),
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "web", UID: "uid-1"},
		}})
		require.NoError(t, err)
		assert.Equal(t, "token-1", answer.Status.Token)
		assert.WithinDuration(t, time.Now().Add(10*time.Minute), answer.Status.ExpirationTimestamp.Time, time.Second)
		assert.Equal(t, []string{"create serviceaccounts/token prod/builder"}, callsOf(s.api.Calls()))
		s.faults.set(about("create", apitest.Fault{Code: 403, Message: "not that pod's"}))
		_, err = s.Token(t.Context(), "prod", "builder", &authenticationv1.TokenRequest{})
		require.EqualError(t, err, "client: token of service account prod/builder: not that pod's")
	})
}

func TestConfigOfObjects(t *testing.T) {
	conn := connect(t, new(apitest.Server))
	for want, cfg := range map[string]client.ObjectsConfig{
		"client: ObjectsConfig.Client is nil":                   {},
		"client: ObjectsConfig.Strategy is Strategy(9)":         {Client: conn.API, Strategy: 9},
		"client: ObjectsConfig.Wait, Grace or Idle is negative": {Client: conn.API, Idle: -1},
	} {
		_, err := client.NewObjects(cfg)
		require.EqualError(t, err, want)
	}
}

// An object without a name does not exist; the namespace is not listed for it.
func TestAnObjectWithoutANameIsNotRead(t *testing.T) { // oc-2
	for _, strategy := range []client.Strategy{client.Watch, client.Cache, client.Get} {
		t.Run(strategy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t, client.ObjectsConfig{Strategy: strategy})
				s.api.Put(newSecret("db", "one"))
				_, err := s.Secret(t.Context(), "prod", "")
				require.ErrorContains(t, err, "client: read secret prod/: name is empty")
				_, err = s.ConfigMap(t.Context(), "prod", "")
				require.ErrorContains(t, err, "name is empty")
				_, err = s.CSIDriver(t.Context(), "")
				require.ErrorContains(t, err, "name is empty")
				pass(time.Minute)
				assert.Empty(t, s.api.Calls())
			})
		})
	}
}
