package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/volume/csi/csitest"
)

const (
	plainDriver    = "plain.csi.example.com"
	attachedDriver = "attached.csi.example.com" // its volumes are attached by a controller
)

// Persistent volumes of CSI drivers in a real cluster: bound, attached and watched over
// by its controllers, mounted by this agent into real containers. The test stands in
// for the drivers' controllers, which attach and resize.
func TestIntegrationClusterStorage(t *testing.T) {
	w := onCluster(t)
	r := w.room(t, "storage")
	loop := lab.LoopDevice(t, filepath.Join(w.dir, "device"), 16<<20)
	drivers := map[string]*csitest.Driver{}
	var stops []func()
	drive := func() {
		for _, name := range []string{plainDriver, attachedDriver} {
			d := drivers[name]
			if d == nil {
				d = &csitest.Driver{
					Name: name, Dir: filepath.Join(w.dir, name), Mounter: mount.New(""), Devices: map[string]string{"device": loop},
					Without: []csipb.NodeServiceCapability_RPC_Type{csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP}, // the agent sees to groups
				}
				drivers[name] = d
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, d.Run(ctx, filepath.Join(w.dir, "root"))) })
			stops = append(stops, func() { cancel(); wg.Wait() })
		}
	}
	halt := func() {
		for _, stop := range stops {
			stop()
		}
		stops = nil
	}
	t.Cleanup(halt)
	r.storageObjects()
	drive()
	r.untilDrivers(attachedDriver, plainDriver)

	for name, driver := range map[string]string{"files": plainDriver, "device": plainDriver, "remote": attachedDriver} {
		mode := v1.PersistentVolumeFilesystem
		if name == "device" {
			mode = v1.PersistentVolumeBlock
		}
		r.bind(name, driver, mode)
	}
	require.NoError(t, os.WriteFile(loop, []byte("of-the-device"), 0o600))
	plain, attached := drivers[plainDriver], drivers[attachedDriver]
	require.NoError(t, os.MkdirAll(plain.Path("files"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(plain.Path("files"), "hello"), []byte("of-the-volume"), 0o644))

	// Files, of a group.
	files := spec(`echo "$(cat /data/hello) $(stat -c %g /data)"; echo by-the-pod >/data/written; trap 'exit 0' TERM; sleep 3600 & wait`)
	files.SecurityContext = &v1.PodSecurityContext{FSGroup: new(int64(4321))}
	r.withClaim(&files, "files")
	r.make("files", files)
	// A device.
	device := spec(`head -c 13 /dev/xvda; echo; printf by-the-pod | dd of=/dev/xvda conv=notrunc,fsync 2>/dev/null; trap 'exit 0' TERM; sleep 3600 & wait`)
	r.withClaim(&device, "device")
	r.make("device", device)
	// An inline volume with the lifetime of its pod, and tokens for it.
	inline := spec(`echo by-the-pod >/data/written; trap 'exit 0' TERM; sleep 3600 & wait`)
	inline.Volumes = []v1.Volume{{Name: "inline", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: plainDriver, VolumeAttributes: map[string]string{"of": "inline"}}}}}
	inline.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "inline", MountPath: "/data"}}
	r.make("inline", inline)
	// One that is attached first.
	remote := spec(`echo by-the-pod >/data/written; trap 'exit 0' TERM; sleep 3600 & wait`)
	r.withClaim(&remote, "remote")
	r.make("remote", remote)

	attachment := r.attach(attachedDriver)
	for name, want := range map[string]string{"files": "of-the-volume 4321\n", "device": "of-the-device\n", "inline": "", "remote": ""} {
		pod := r.untilPhase(name, v1.PodRunning)
		r.until(name+" has read its volume", func() error {
			if got := r.logOf(pod); got != want {
				return fmt.Errorf("its log is %q", got)
			}
			return nil
		})
	}
	r.untilWritten(filepath.Join(plain.Path("files"), "written"), "by-the-pod\n")
	r.untilWritten(loop, "by-the-pod")
	r.untilWritten(filepath.Join(attached.Path("remote"), "written"), "by-the-pod\n")
	assert.Equal(t, map[string]string{"device": "/dev/none"}, attached.Volume("remote").Stage.PublishContext, "the result of the attachment")
	r.checkInline(plain)
	r.untilInUse("kubernetes.io/csi/" + attachedDriver + "^remote")

	// The claim grows.
	r.grow("files", "2Gi")
	r.until("the driver has expanded the volume, and the claim reports it", func() error {
		if size := plain.Volume("files").Size; size != 2<<30 {
			return fmt.Errorf("it has %d bytes", size)
		}
		claim, err := r.api.CoreV1().PersistentVolumeClaims(r.name).Get(t.Context(), "files", metav1.GetOptions{})
		if err == nil && (claim.Status.Capacity.Storage().String() != "2Gi" || resizing(claim)) {
			err = fmt.Errorf("%+v", claim.Status)
		}
		return err
	})
	r.untilEvent("files", "FileSystemResizeSuccessful")

	// Agent and drivers restart; the pods are not affected.
	before, err := r.pod("files")
	require.NoError(t, err)
	w.kill()
	halt()
	drive()
	w.start()
	r.untilDrivers(attachedDriver, plainDriver)
	require.NoError(t, os.WriteFile(filepath.Join(plain.Path("files"), "hello"), []byte("seen-by-the-next"), 0o644))
	again := spec(`cat /data/hello /data/written; trap 'exit 0' TERM; sleep 3600 & wait`)
	r.withClaim(&again, "files")
	r.make("again", again)
	pod := r.untilPhase("again", v1.PodRunning)
	r.until("the next pod of the node has the same files", func() error {
		if got := r.logOf(pod); got != "seen-by-the-nextby-the-pod\n" {
			return fmt.Errorf("its log is %q", got)
		}
		return nil
	})
	after, err := r.pod("files")
	require.NoError(t, err)
	assert.Equal(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID)
	assert.LessOrEqual(t, plain.Volume("files").Stages, 2, "once for both pods, and once more by the agent that found it (a call that may be repeated)")
	assert.EqualValues(t, 2<<30, plain.Volume("files").Size)

	// All of it is removed, except the data.
	for _, name := range []string{"files", "again", "device", "inline", "remote"} {
		r.delete(name, -1)
	}
	for _, name := range []string{"files", "again", "device", "inline", "remote"} {
		r.untilGone(name)
	}
	r.until("nothing is mounted", func() error {
		if in := append(plain.InUse(), attached.InUse()...); len(in) > 0 {
			return fmt.Errorf("the drivers have %v", in)
		}
		mounts, err := mount.New("").List()
		for _, m := range mounts {
			if strings.HasPrefix(m.Path, filepath.Join(w.dir, "root")+"/") {
				err = fmt.Errorf("%s", m.Path)
			}
		}
		return err
	})
	r.until("the volume is detached", func() error {
		_, err := r.api.StorageV1().VolumeAttachments().Get(t.Context(), attachment, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it still exists (%w)", err)
	})
	assert.FileExists(t, filepath.Join(plain.Path("files"), "written"))
	assert.FileExists(t, filepath.Join(attached.Path("remote"), "written"))
	halt()
	r.untilDrivers()
}

// storageObjects makes what drivers' installers make, and a class whose volumes grow.
func (r *room) storageObjects() {
	r.t.Helper()
	for name, attach := range map[string]bool{plainDriver: false, attachedDriver: true} {
		_, err := r.api.StorageV1().CSIDrivers().Create(r.t.Context(), &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{
				AttachRequired: &attach, PodInfoOnMount: new(true), FSGroupPolicy: new(storagev1.FileFSGroupPolicy),
				VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
				TokenRequests:        []storagev1.TokenRequest{{Audience: "vault"}},
			},
		}, metav1.CreateOptions{})
		require.NoError(r.t, err)
	}
	_, err := r.api.StorageV1().StorageClasses().Create(r.t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "kubernetes.io/no-provisioner", AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
}

// bind makes a volume and a claim of the same name, which the cluster binds.
func (r *room) bind(name, driver string, mode v1.PersistentVolumeMode) {
	r.t.Helper()
	modes, size := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	_, err := r.api.CoreV1().PersistentVolumes().Create(r.t.Context(), &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, VolumeMode: &mode, StorageClassName: "grows", PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			ClaimRef:               &v1.ObjectReference{Namespace: r.name, Name: name},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		},
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
	_, err = r.api.CoreV1().PersistentVolumeClaims(r.name).Create(r.t.Context(), &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeMode: &mode, StorageClassName: new("grows"), VolumeName: name, Resources: v1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
	r.until("the claim is bound", func() error {
		claim, err := r.api.CoreV1().PersistentVolumeClaims(r.name).Get(r.t.Context(), name, metav1.GetOptions{})
		if err == nil && claim.Status.Phase != v1.ClaimBound {
			err = fmt.Errorf("it is %s", claim.Status.Phase)
		}
		return err
	})
}

// withClaim gives the pod's container a claim: files at /data, or a device.
func (r *room) withClaim(s *v1.PodSpec, claim string) {
	s.Volumes = []v1.Volume{{Name: claim, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	if claim == "device" {
		s.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: claim, DevicePath: "/dev/xvda"}}
		return
	}
	s.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: claim, MountPath: "/data"}}
}

// untilDrivers waits until the CSINode lists exactly these drivers.
func (r *room) untilDrivers(names ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("the node has the drivers %v", names), func() error {
		known, err := r.api.StorageV1().CSINodes().Get(r.t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, d := range known.Spec.Drivers {
			assert.Equal(r.t, "node-of-"+d.Name, d.NodeID)
			got = append(got, d.Name)
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// attach does the work of the driver's attacher once the cluster requests it, and
// returns the name of the VolumeAttachment.
func (r *room) attach(driver string) (name string) {
	r.t.Helper()
	r.until("the cluster requests the attachment of the volume", func() error {
		list, err := r.api.StorageV1().VolumeAttachments().List(r.t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%d attachments", len(list.Items))
		}
		if err != nil {
			return err
		}
		a := list.Items[0]
		assert.Equal(r.t, driver, a.Spec.Attacher, "of those that need it")
		name = a.Name
		_, err = r.api.StorageV1().VolumeAttachments().Patch(r.t.Context(), name, types.MergePatchType,
			[]byte(`{"status":{"attached":true,"attachmentMetadata":{"device":"/dev/none"}}}`), metav1.PatchOptions{}, "status")
		return err
	})
	return name
}

// untilWritten waits until a file begins with want.
func (r *room) untilWritten(path, want string) {
	r.t.Helper()
	r.until(path+" is written", func() error {
		got, err := os.ReadFile(path)
		if err == nil && !strings.HasPrefix(string(got), want) {
			err = fmt.Errorf("it begins with %q", got[:min(len(got), 20)])
		}
		return err
	})
}

// untilInUse waits until the node reports a volume as in use, so that it is not
// detached.
func (r *room) untilInUse(want v1.UniqueVolumeName) {
	r.t.Helper()
	r.until("the volume is reported to be in use", func() error {
		node, err := r.api.CoreV1().Nodes().Get(r.t.Context(), "node", metav1.GetOptions{})
		if err == nil && !slices.Contains(node.Status.VolumesInUse, want) {
			err = fmt.Errorf("%v are", node.Status.VolumesInUse)
		}
		return err
	})
}

// checkInline checks the requests that the driver received for the volume in the pod
// itself.
func (r *room) checkInline(driver *csitest.Driver) {
	r.t.Helper()
	pod, err := r.pod("inline")
	require.NoError(r.t, err)
	i := slices.IndexFunc(driver.InUse(), func(id string) bool { return strings.HasPrefix(id, "csi-") })
	require.GreaterOrEqual(r.t, i, 0, "%v", driver.InUse())
	volume := driver.Volume(driver.InUse()[i])
	require.Empty(r.t, volume.Staged)
	for _, request := range volume.Published {
		about := request.VolumeContext
		assert.Equal(r.t, "inline", about["of"])
		assert.Equal(r.t, "true", about["csi.storage.k8s.io/ephemeral"])
		assert.Equal(r.t, string(pod.UID), about["csi.storage.k8s.io/pod.uid"])
		tokens := map[string]struct{ Token string }{}
		require.NoError(r.t, json.Unmarshal([]byte(about["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens))
		review, err := r.api.AuthenticationV1().TokenReviews().Create(r.t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: tokens["vault"].Token, Audiences: []string{"vault"}},
		}, metav1.CreateOptions{})
		require.NoError(r.t, err)
		assert.True(r.t, review.Status.Authenticated, review.Status.Error)
		assert.Equal(r.t, "system:serviceaccount:"+r.name+":default", review.Status.User.Username)
		assert.Contains(r.t, review.Status.User.Extra["authentication.kubernetes.io/pod-uid"], string(pod.UID))
	}
}

// grow increases the request of a claim, and does the work of the driver's resizer.
// The agent reads claims with each sync of their pods, such as after a change.
func (r *room) grow(name, size string) {
	r.t.Helper()
	claims := r.api.CoreV1().PersistentVolumeClaims(r.name)
	patch := func(what string, err error) { require.NoError(r.t, err, what) }
	_, err := claims.Patch(r.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`), metav1.PatchOptions{})
	patch("claim", err)
	_, err = claims.Patch(r.t.Context(), name, types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"FileSystemResizePending","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	patch("claim's status", err)
	_, err = r.api.CoreV1().PersistentVolumes().Patch(r.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"capacity":{"storage":"`+size+`"}}}`), metav1.PatchOptions{})
	patch("volume", err)
	_, err = r.api.CoreV1().Pods(r.name).Patch(r.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"look":"again"}}}`), metav1.PatchOptions{})
	patch("pod", err)
}

// resizing reports whether the claim has one of the conditions of a resize.
func resizing(claim *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		return c.Type != "Unused" // since Kubernetes 1.37
	})
}
