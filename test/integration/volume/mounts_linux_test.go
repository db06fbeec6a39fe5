package volume_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// loop makes a block device of a file of the stage.
func (s *volumeNode) loop(t *testing.T, name string) string {
	t.Helper()
	return lab.LoopDevice(t, filepath.Join(s.dir, name), 32<<20)
}

// localPV is a persistent volume at a path of this machine.
func localPV(path string, mode v1.PersistentVolumeMode) *v1.PersistentVolume {
	return &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		VolumeMode: &mode, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}},
	}}
}

// runs syncs the pod until all of its containers run, and returns a shell in each.
func (s *volumeNode) runs(t *testing.T, p *v1.Pod) func(container, script string) string {
	t.Helper()
	ids := map[string]string{}
	require.Eventually(t, func() bool {
		st, err := s.rt.PodStatus(t.Context(), p.UID)
		require.NoError(t, err)
		for _, c := range st.Containers {
			if c.State == runtime.ContainerRunning {
				ids[c.Name] = c.ID
			}
		}
		if len(ids) == len(p.Spec.Containers) {
			return true
		}
		_, err = s.Sync(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st})
		require.NoError(t, err, "%v", s.events)
		return false
	}, time.Minute, 100*time.Millisecond)
	return func(container, script string) string {
		res, err := s.rt.Exec(t.Context(), ids[container], []string{"sh", "-c", "{ " + script + "; } 2>&1"}, time.Minute)
		require.NoError(t, err)
		return strings.ReplaceAll(strings.TrimSpace(string(res.Stdout)), "\r", "")
	}
}

// ends removes the pod, and all mounts made for it.
func (s *volumeNode) ends(t *testing.T, p *v1.Pod) {
	t.Helper()
	st, err := s.rt.PodStatus(t.Context(), p.UID)
	require.NoError(t, err)
	require.NoError(t, s.Terminate(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st, GracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds}))
	require.NoError(t, s.Cleanup(t.Context(), podworker.SyncRequest{UID: p.UID, Pod: p, Status: st}), "%v", s.events)
	assert.NoDirExists(t, filepath.Join(s.root, "pods", string(p.UID), "volumes"))
}

// Propagation of mounts from the machine to containers, from there to the machine and
// to the next container; mounts below a read-only mount; and real block devices, raw
// and with a file system that is created on them (vol-59, vol-72, vol-73, vol-74).
func TestIntegrationMountsAndDevicesOfVolumes(t *testing.T) {
	lab.Need(t, "containerd")
	s := newVolumeNode(t)
	features, err := s.rt.Features(t.Context())
	require.NoError(t, err)
	recursive := features.Handlers[""].RecursiveReadOnlyMounts
	raw, formatted := s.loop(t, "raw"), s.loop(t, "formatted")
	s.objects.pvs = map[string]*v1.PersistentVolume{
		"raw": localPV(raw, v1.PersistentVolumeBlock), "formatted": localPV(formatted, v1.PersistentVolumeFilesystem),
	}
	below := filepath.Join(s.host(), "below")
	require.NoError(t, unix.Mount("early", below, "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })

	claim := func(name string) v1.Volume {
		return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
	}
	both, toContainer, group, grace, privileged := v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, int64(4321), int64(0), true
	readOnly := v1.RecursiveReadOnlyIfPossible
	if recursive {
		readOnly = v1.RecursiveReadOnlyEnabled
	}
	c := func(name string, mounts ...v1.VolumeMount) v1.Container {
		return v1.Container{Name: name, Image: lab.Busybox, ImagePullPolicy: v1.PullNever, Command: []string{"sleep", "100000"}, VolumeMounts: mounts}
	}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mounts", Namespace: "default", UID: "uid-mounts"}, Spec: v1.PodSpec{
		TerminationGracePeriodSeconds: &grace, DNSPolicy: v1.DNSNone, RestartPolicy: v1.RestartPolicyAlways,
		SecurityContext: &v1.PodSecurityContext{FSGroup: &group},
		Volumes:         []v1.Volume{{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: s.host()}}}, claim("raw"), claim("formatted")},
		Containers: []v1.Container{
			c("mounter", v1.VolumeMount{Name: "host", MountPath: "/host", MountPropagation: &both}),
			c("follower", v1.VolumeMount{Name: "host", MountPath: "/host", MountPropagation: &toContainer}),
			c("alone", v1.VolumeMount{Name: "host", MountPath: "/host"},
				v1.VolumeMount{Name: "host", MountPath: "/closed", ReadOnly: true},
				v1.VolumeMount{Name: "host", MountPath: "/shut", ReadOnly: true, RecursiveReadOnly: &readOnly},
				v1.VolumeMount{Name: "formatted", MountPath: "/formatted"}),
		},
	}}
	p.Spec.Containers[0].SecurityContext = &v1.SecurityContext{Privileged: &privileged}
	p.Spec.Containers[2].VolumeDevices = []v1.VolumeDevice{{Name: "raw", DevicePath: "/dev/raw"}}
	sh := s.runs(t, p)

	// Propagation.
	assert.Empty(t, sh("mounter", "mkdir /host/inside && mount -t tmpfs inside /host/inside && touch /host/inside/file"))
	assert.FileExists(t, filepath.Join(s.host(), "inside", "file"), "Bidirectional: the machine sees it")
	assert.Equal(t, "file", sh("follower", "ls /host/inside"), "HostToContainer: so does another container")
	assert.Empty(t, sh("alone", "ls /host/inside"), "None: it does not")
	require.NoError(t, os.Mkdir(filepath.Join(s.host(), "late"), 0o755))
	require.NoError(t, unix.Mount("late", filepath.Join(s.host(), "late"), "tmpfs", 0, ""))
	require.NoError(t, os.WriteFile(filepath.Join(s.host(), "late", "file"), nil, 0o644))
	assert.Equal(t, "file", sh("mounter", "ls /host/late"))
	assert.Equal(t, "file", sh("follower", "ls /host/late"))
	assert.Empty(t, sh("alone", "ls /host/late"))
	require.NoError(t, unix.Unmount(filepath.Join(s.host(), "late"), 0))
	assert.Empty(t, sh("mounter", "umount /host/inside"))
	assert.NoFileExists(t, filepath.Join(s.host(), "inside", "file"))

	// Read-only, and the mounts below.
	assert.Equal(t, "touch: /closed/x: Read-only file system", sh("alone", "touch /closed/x"))
	assert.Empty(t, sh("alone", "touch /closed/below/x"), "the mount below is still writable")
	assert.Equal(t, "touch: /shut/x: Read-only file system", sh("alone", "touch /shut/x"))
	if recursive {
		assert.Equal(t, "touch: /shut/below/x: Read-only file system", sh("alone", "touch /shut/below/x"))
	} else {
		assert.Empty(t, sh("alone", "touch /shut/below/x"), "this runtime can't")
	}

	// Devices.
	assert.Equal(t, "ok", sh("alone", "test -b /dev/raw && echo written | dd of=/dev/raw bs=512 conv=sync,fsync 2>/dev/null && echo ok"))
	device, err := os.Open(raw)
	require.NoError(t, err)
	defer device.Close()
	got := make([]byte, 7)
	_, err = device.ReadAt(got, 0)
	require.NoError(t, err)
	assert.Equal(t, "written", string(got))
	assert.Equal(t, "1\n2775 4321", sh("alone", "grep -c ' /formatted ext4 ' /proc/mounts; stat -c '%a %g' /formatted; echo kept >/formatted/kept"))

	// The same file system again, in the next pod.
	s.ends(t, p)
	gone := func() bool {
		mounts, err := os.ReadFile("/proc/mounts")
		require.NoError(t, err)
		return !strings.Contains(string(mounts), formatted+" ")
	}
	require.Eventually(t, gone, time.Minute, 50*time.Millisecond, "an unused device is unstaged")
	next := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "next", Namespace: "default", UID: "uid-next"}, Spec: *p.Spec.DeepCopy()}
	next.Spec.Volumes, next.Spec.Containers = []v1.Volume{claim("formatted")}, []v1.Container{c("alone", v1.VolumeMount{Name: "formatted", MountPath: "/formatted"})}
	assert.Equal(t, "kept", s.runs(t, next)("alone", "cat /formatted/kept"))
	s.ends(t, next)
	require.Eventually(t, gone, time.Minute, 50*time.Millisecond)
}
