package volume_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// claims reads from an API that can be unreachable.
type claims struct {
	claims map[string]*v1.PersistentVolumeClaim
	pvs    map[string]*v1.PersistentVolume
	down   error

	expanded string // the last claim and its size
}

func (c *claims) PersistentVolumeClaim(_ context.Context, _, name string) (*v1.PersistentVolumeClaim, error) {
	if c.down != nil {
		return nil, c.down
	}
	if claim := c.claims[name]; claim != nil {
		return claim, nil
	}
	return nil, errors.New("not found")
}

func (c *claims) PersistentVolume(_ context.Context, name string) (*v1.PersistentVolume, error) {
	if pv := c.pvs[name]; pv != nil {
		return pv, nil
	}
	return nil, errors.New("not found")
}

func (c *claims) ClaimExpanded(_ context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error {
	c.expanded = claim.Name + " " + size.String()
	return nil
}

// bound adds a claim and the volume that it is bound to.
func (c *claims) bound(name string, change ...func(*v1.PersistentVolumeClaim, *v1.PersistentVolume)) *claims {
	if c.claims == nil {
		c.claims, c.pvs = map[string]*v1.PersistentVolumeClaim{}, map[string]*v1.PersistentVolume{}
	}
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid-of-" + "claim"},
		Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: claim.UID}},
	}
	for _, f := range change {
		f(claim, pv)
	}
	c.claims[name], c.pvs[pv.Name] = claim, pv
	return c
}

func claimPod(uid string, names ...string) *v1.Pod {
	p := pod(uid, names...)
	for i, name := range names {
		p.Spec.Volumes[i].VolumeSource = v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	return p
}

func TestClaims(t *testing.T) {
	type object = func(*v1.PersistentVolumeClaim, *v1.PersistentVolume)
	block := v1.PersistentVolumeBlock
	now := metav1.Now()
	asDevice := func(p *v1.Pod) {
		p.Spec.Containers[0].VolumeMounts = nil
		p.Spec.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "c", DevicePath: "/dev/x"}}
	}
	ephemeral := func(p *v1.Pod) {
		p.Spec.Volumes[0].VolumeSource = v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}
	}
	const prefix = "error processing PVC default/c: "
	for name, c := range map[string]struct {
		objects *claims
		pod     func(*v1.Pod)
		err     string
	}{
		"vol-6 bound":   {new(claims).bound("c"), nil, ""},
		"vol-6 no API":  {nil, nil, prefix + "this node has no access to claims"},
		"vol-6 fetch":   {&claims{down: errors.New("refused")}, nil, prefix + "failed to fetch PVC from API server: refused"},
		"vol-6 deleted": {new(claims).bound("c", func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.DeletionTimestamp = &now }), nil, prefix + "PVC is being deleted"},
		"vol-6 protected": {new(claims).bound("c", func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
			c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		}), nil, ""},
		"vol-6 pending": {new(claims).bound("c", func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Status.Phase = v1.ClaimPending }), nil, prefix + "PVC is not bound"},
		"vol-6 no name": {new(claims).bound("c", func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Spec.VolumeName = "" }), nil, prefix + "PVC has empty pvc.Spec.VolumeName"},
		"vol-6 no PV":   {new(claims).bound("c", func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) { c.Spec.VolumeName = "x" }), nil, prefix + "failed to fetch PV x from API server: not found"},
		"vol-6 nil ref": {new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.ClaimRef = nil }), nil,
			prefix + "found PV object pv-c but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"},
		"vol-6 another's": {new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.ClaimRef.UID = "z" }), nil,
			prefix + "found PV object pv-c but its pv.Spec.ClaimRef.UID z does not point to claim.UID uid-of-claim"},
		"vol-7 ephemeral": {new(claims).bound("p-c", object(func(c *v1.PersistentVolumeClaim, _ *v1.PersistentVolume) {
			controller := true
			c.OwnerReferences = []metav1.OwnerReference{{UID: "p", Controller: &controller}}
		})), ephemeral, ""},
		"vol-7 another pod's": {new(claims).bound("p-c"), ephemeral, "error processing PVC default/p-c: PVC default/p-c was not created for pod default/p (pod is not owner)"},
		"vol-8 block as files": {new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &block }), nil,
			"volume c has volumeMode Block, but is specified in volumeMounts"},
		"vol-8 files as block":    {new(claims).bound("c"), asDevice, "volume c has volumeMode Filesystem, but is specified in volumeDevices"},
		"vol-8 emptyDir as block": {nil, func(p *v1.Pod) { asDevice(p); p.Spec.Volumes[0].VolumeSource = v1.VolumeSource{} }, "volume c has volumeMode Filesystem, but is specified in volumeDevices"},
		"vol-74 block":            {new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &block }), asDevice, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
				n.plugin = &volumetest.Plugin{Capabilities: volumetest.Capabilities{Block: true}}
				start(t, n, func(cfg *volume.Config) {
					if c.objects != nil {
						cfg.PersistentVolumes.Claims = c.objects
					}
				})
				p := claimPod("p", "c")
				if c.pod != nil {
					c.pod(p)
				}
				_, err := n.Mount(t.Context(), p)
				if c.err == "" {
					assert.NoError(t, err)
					return
				}
				assert.EqualError(t, err, "unmounted volumes=[c], unattached volumes=[], failed to process volumes=[c]: "+c.err)
				assert.NoDirExists(t, filepath.Join(n.root, "pods"))
			})
		})
	}
}

// vol-72, vol-74: where the pod finds its persistent volumes.
func TestPersistentVolumesUseTheirOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Capabilities: volumetest.Capabilities{Block: true}}
		mode := v1.PersistentVolumeBlock
		objects := new(claims).bound("a").bound("b", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &mode })
		start(t, n, func(c *volume.Config) { c.PersistentVolumes.Claims = objects })
		p := claimPod("p", "a", "b")
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "again", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "a", ReadOnly: true},
		}})
		c := &p.Spec.Containers[0]
		c.VolumeMounts = []v1.VolumeMount{{Name: "a"}, {Name: "again"}}
		c.VolumeDevices = []v1.VolumeDevice{{Name: "b"}}
		got, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		dir := filepath.Join(n.root, "pods/p")
		files := filepath.Join(dir, "volumes/example.com~fake/pv-a")
		assert.Equal(t, map[string]runtime.Volume{
			"a": {Path: files}, "again": {Path: files, ReadOnly: true}, "b": {Device: filepath.Join(dir, "volumeDevices/example.com~fake/pv-b")},
		}, got)
		assert.Equal(t, 2, n.plugin.Count("SetUp"), "a claim that a pod has twice is one volume")
		assert.Equal(t, []string{`Normal SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "pv-b" volumeMapPath "` + got["b"].Device + `"`}, n.emitted()) // vol-22
		require.NoError(t, n.Unmount(t.Context(), p))
		assert.NoDirExists(t, dir)
	})
}

// vol-22: a device that cannot be mapped emits a separate event.
func TestABlockVolumeThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		n.plugin = &volumetest.Plugin{Capabilities: volumetest.Capabilities{Block: true}, Fault: func(context.Context, string, string) error { return volumetest.ErrFault }}
		mode := v1.PersistentVolumeBlock
		objects := new(claims).bound("b", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.VolumeMode = &mode })
		start(t, n, func(c *volume.Config) { c.PersistentVolumes.Claims, c.WaitTimeout = objects, time.Millisecond })
		p := claimPod("p", "b")
		p.Spec.Containers[0].VolumeMounts, p.Spec.Containers[0].VolumeDevices = nil, []v1.VolumeDevice{{Name: "b"}}
		_, err := n.Mount(t.Context(), p)
		require.Error(t, err)
		assert.Equal(t, []string{`Warning FailedMapVolume MapVolume.MapPodDevice failed for volume "pv-b" : volumetest: injected fault`}, n.emitted())
		n.plugin.Capabilities.Block = false
	})
}

// A pod whose volumes are mounted does without the API (and so does one whose
// volumes an earlier agent has mounted).
func TestAMountedClaimNeedsNoAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c")
		with := func(c *volume.Config) { c.PersistentVolumes.Claims = objects }
		n := start(t, nil, with)
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		objects.down = errors.New("refused")
		_, err = n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		n.stop()
		start(t, n, with)
		_, err = n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		_, err = n.Mount(t.Context(), claimPod("q", "c"))
		require.Error(t, err)
	})
}

// vol-20: a volume of the mode ReadWriteOncePod is one pod's at a time.
func TestReadWriteOncePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		})
		n := start(t, nil, func(c *volume.Config) { c.PersistentVolumes.Claims, c.WaitTimeout = objects, time.Minute })
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
		_, err = n.Mount(t.Context(), claimPod("q", "c"))
		assert.ErrorContains(t, err, "volume uses the ReadWriteOncePod access mode and is already in use by another pod")
		assert.Equal(t, `Warning FailedMount MountVolume.SetUp failed for volume "pv-c" : volume uses the ReadWriteOncePod access mode and is already in use by another pod`, n.emitted()[0])
		require.NoError(t, n.Unmount(t.Context(), claimPod("p", "c")))
		begun := time.Now()
		_, err = n.Mount(t.Context(), claimPod("q", "c"))
		require.NoError(t, err)
		assert.Zero(t, time.Since(begun), "it does not wait for the end of a back-off")
	})
}

// vol-20: nor can one be had on a node that it is not for.
func TestNodeAffinity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd"}}}},
			}}}
		})
		here := &v1.Node{}
		n := start(t, nil, func(c *volume.Config) {
			c.PersistentVolumes.Claims, c.WaitTimeout, c.PersistentVolumes.Node = objects, time.Second, apiNode{object: func() *v1.Node { return here }}
		})
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		assert.ErrorContains(t, err, "no matching NodeSelectorTerms")
		here = &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"disk": "ssd"}}}
		_, err = n.Mount(t.Context(), claimPod("p", "c"))
		require.NoError(t, err)
	})
}

// vol-20: a plugin that does not support mount options is not set up with any.
func TestMountOptionsOfAPluginThatTakesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter), plugin: &volumetest.Plugin{Capabilities: volumetest.Capabilities{NoMountOptions: true}}}
		start(t, n, func(c *volume.Config) {
			c.PersistentVolumes.Claims = new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
				pv.Spec.MountOptions = []string{"noatime"}
			})
			c.WaitTimeout = 100 * time.Millisecond
		})
		_, err := n.Mount(t.Context(), claimPod("p", "c"))
		require.ErrorContains(t, err, "plugin example.com/fake does not support the mountOptions [noatime] of the persistent volume")
		assert.Zero(t, n.plugin.Count("SetUp"))
		assert.Equal(t, []string{`Warning FailedMount MountVolume.SetUp failed for volume "pv-c" : plugin example.com/fake does not support the mountOptions [noatime] of the persistent volume`}, n.emitted())
	})
}

// vol-9, vol-13, vol-16, vol-20: the request that the plugin receives.
func TestRequestPassedToThePlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := new(claims).bound("c", func(c *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
			c.Status.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
			pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
			pv.Spec.MountOptions = []string{"noatime"}
		})
		translated := 0
		n := start(t, nil, func(c *volume.Config) {
			c.PersistentVolumes.Claims = objects
			c.PersistentVolumes.Translate = func(s *volume.Spec, namespace string) (*volume.Spec, error) {
				translated++
				assert.Equal(t, "default", namespace)
				return s, nil
			}
		})
		p := claimPod("p", "c")
		group, user := int64(1234), int64(99)
		policy := v1.FSGroupChangeOnRootMismatch
		p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group, FSGroupChangePolicy: &policy, RunAsUser: &user}
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		req := n.plugin.Last("pv-c")
		assert.Equal(t, []string{"noatime"}, req.MountOptions)
		assert.Equal(t, group, *req.FSGroup)
		assert.Equal(t, policy, *req.FSGroupPolicy)
		assert.Equal(t, user, *req.FSUser) // vol-55
		assert.Equal(t, 1, translated)

		// It has grown since (vol-16).
		objects.pvs["pv-c"] = objects.pvs["pv-c"].DeepCopy()
		objects.pvs["pv-c"].Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, "c 2Gi", objects.expanded)
		assert.Equal(t, []string{`Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv-c"`}, n.emitted())
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, 1, n.plugin.Count("Expand"))

		other := int64(7) // not all containers run as the same user
		p.Spec.InitContainers = []v1.Container{{Name: "i", SecurityContext: &v1.SecurityContext{RunAsUser: &other}}}
		p.UID = "q"
		_, err = n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Nil(t, n.plugin.Last("pv-c").FSUser)
	})
}
