package machine

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModulesAreLoadedAfterThoseThatTheyDependOn(t *testing.T) {
	// As depmod writes it: of several needed modules, the last one has to be loaded first.
	const dep = `kernel/a/virtio.ko:
kernel/a/virtio_ring.ko: kernel/a/virtio.ko
kernel/b/virtio-pci.ko: kernel/a/virtio_ring.ko kernel/a/virtio.ko
kernel/b/virtio_blk.ko: kernel/a/virtio_ring.ko kernel/a/virtio.ko
kernel/c/other.ko:
`
	order, err := loadOrder(strings.NewReader(dep), []string{"virtio_pci", "built_in", "virtio_blk"})
	require.NoError(t, err)
	assert.Equal(t, []string{"kernel/a/virtio.ko", "kernel/a/virtio_ring.ko", "kernel/b/virtio-pci.ko", "kernel/b/virtio_blk.ko"}, order)
}

func TestTheExitCodeIsInTheLastLine(t *testing.T) {
	var out strings.Builder
	code, found := copyOutput(&out, strings.NewReader("one\r\nkubeparts-exit x\r\nkubeparts-exit 3\r\n"))
	assert.True(t, found)
	assert.Equal(t, 3, code)
	assert.Equal(t, "one\nkubeparts-exit x\n", out.String())

	out.Reset()
	_, found = copyOutput(&out, strings.NewReader("one\ncut off"))
	assert.False(t, found, "the machine has stopped before the end")
	assert.Equal(t, "one\ncut off\n", out.String())
}

func TestAMachineHasNodesDisksAndTheFirstProcess(t *testing.T) {
	c := Config{CPUs: 4, MemoryMiB: 4096, NUMANodes: 2, HugePages: 8, Systemd: true}
	args := strings.Join(arguments(c, root{"/r"}, disks{"/r/root.img", "/p", "/j", "/o", "/s"}, "/console"), " ")
	assert.Contains(t, args, "-smp 4,sockets=2,cores=1,threads=2 ")
	assert.Contains(t, args, "-numa node,nodeid=0,memdev=node0,cpus=0-1")
	assert.Contains(t, args, "-object memory-backend-ram,id=node1,size=2048M -numa node,nodeid=1,memdev=node1,cpus=2-3")
	assert.Contains(t, args, "hugepages=8")
	assert.Contains(t, args, "realinit=/usr/lib/systemd/systemd")
	assert.Contains(t, args, "file=/r/root.img,format=raw,if=virtio,snapshot=on", "the disk that is kept is never written to")
	assert.Contains(t, args, "file=/j,format=raw,if=virtio,readonly=on")
	// The disks have the order of their names in the machine.
	assert.Less(t, strings.Index(args, "file=/p,"), strings.Index(args, "file=/j,"))
	assert.Less(t, strings.Index(args, "file=/o,"), strings.Index(args, "file=/s,"))

	args = strings.Join(arguments(Config{CPUs: 1, MemoryMiB: 1024, NUMANodes: 2}, root{"/r"}, disks{"/r/root.img", "/p", "/j", "/o", ""}, "/console"), " ")
	assert.Contains(t, args, "-smp 1,sockets=1,cores=1,threads=1 ")
	assert.Contains(t, args, "-numa node,nodeid=0,memdev=node0,cpus=0-0 ")
	assert.Contains(t, args, "-numa node,nodeid=1,memdev=node1 ", "the second node has only memory")

	args = strings.Join(arguments(Config{CPUs: 1, MemoryMiB: 1024, NUMANodes: 1}, root{"/r"}, disks{"/r/root.img", "/p", "/j", "/o", ""}, "/console"), " ")
	assert.NotContains(t, args, "-numa")
	assert.Contains(t, args, "-smp 1,sockets=1,cores=1,threads=1 ")
	assert.NotContains(t, args, "hugepages")
	assert.Contains(t, args, "realinit=/usr/local/sbin/init")
	assert.Equal(t, 4, strings.Count(args, "-drive"))
	assert.NotContains(t, args, "-icount")

	args = strings.Join(arguments(Config{CPUs: 1, MemoryMiB: 1024, VirtualTime: true}, root{"/r"}, disks{"/r/root.img", "/p", "/j", "/o", ""}, "/console"), " ")
	assert.Contains(t, args, "-icount shift=0,sleep=off -rtc clock=vm")
	assert.NotContains(t, args, "thread=multi")
}

func TestResultsStayInTheirDirectory(t *testing.T) {
	archive := func(name string) *bytes.Buffer {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "./", Typeflag: tar.TypeDir}))
		require.NoError(t, w.WriteHeader(&tar.Header{Name: "./link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}))
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 4, Mode: 0o600}))
		_, err := w.Write([]byte("text"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		b.Write(make([]byte, 1<<20)) // the rest of the disk
		return &b
	}
	dir := t.TempDir()
	require.NoError(t, unpack(archive("./results.json"), dir))
	data, err := os.ReadFile(filepath.Join(dir, "results.json"))
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
	_, err = os.Lstat(filepath.Join(dir, "link"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, unpack(archive("../outside"), dir), `unexpected file "../outside"`)
	assert.NoError(t, unpack(bytes.NewReader(make([]byte, 1<<20)), dir), "a disk that nothing was written to")
}

func TestADiskIsMadeAgainForOtherPrograms(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("text"), 0o755))
	_, size, err := describe(dir)
	require.NoError(t, err)
	assert.EqualValues(t, 4, size)
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	first, _, err := describe(dir)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	again, _, err := describe(dir)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("texts"), 0o755))
	other, _, err := describe(dir)
	require.NoError(t, err)
	assert.NotEqual(t, first, other)
}

func TestProgramsAreStagedWithTheLinksAmongThem(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	require.NoError(t, os.WriteFile(filepath.Join(from, "one"), []byte("text"), 0o755))
	require.NoError(t, os.Symlink("one", filepath.Join(from, "two")))
	require.NoError(t, Stage(from, to, []string{"one", "two"}))
	target, err := os.Readlink(filepath.Join(to, "two"))
	require.NoError(t, err)
	assert.Equal(t, "one", target)
	data, err := os.ReadFile(filepath.Join(to, "two"))
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
	assert.ErrorContains(t, Stage(from, filepath.Join(to, "x"), []string{"three"}), "three")
}
