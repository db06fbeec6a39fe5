package machine

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// packages are the Debian packages of the root file system, without those that they depend on.
var packages = []string{
	"systemd", "dbus-daemon", "kmod", "libc-bin", "busybox-static", "bash", "coreutils", "grep", "sed", "mawk", "findutils", "tar", "hostname",
	"util-linux", "mount", "procps", "iproute2", "iptables", "runc", "containernetworking-plugins", "etcd-server", "ca-certificates", "linux-image-cloud-amd64",
}

// excluded are files of the packages that no program of the machine reads.
var excluded = []string{
	"./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/perl", "./usr/share/perl5", "./usr/lib/x86_64-linux-gnu/perl", "./usr/lib/x86_64-linux-gnu/libperl*",
	"./boot/System.map*", "./lib/modules/*/kernel/sound", "./lib/modules/*/kernel/drivers/gpu",
}

// bootModules are needed to mount the root file system.
var bootModules = []string{"virtio_pci", "virtio_blk"}

// A root is what the machine boots from.
type root struct {
	dir string
}

func (r root) kernel() string { return filepath.Join(r.dir, "vmlinuz") }
func (r root) initrd() string { return filepath.Join(r.dir, "initrd") }
func (r root) disk() string   { return filepath.Join(r.dir, "root.img") }

// The directories and links of the root file system that the scripts of packages would make.
var (
	directories = []string{"proc", "sys", "dev", "run", "tmp", "root", "out", "programs", "job", "var/tmp"}
	links       = map[string]string{
		"usr/sbin/iptables": "iptables-nft", "usr/sbin/ip6tables": "ip6tables-nft", "usr/bin/awk": "mawk", "usr/bin/sh": "bash",
		"var/run": "/run", // where programs look for the system bus
	}
)

// recipe identifies how a root file system is made.
func recipe() string {
	sum := sha256.New()
	fmt.Fprint(sum, packages, excluded, bootModules, diskSize, initrdScript, directories, links)
	files := guestFiles()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(sum, name, files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// openRoot returns the root file system in a directory. It makes it unless one of the same recipe is there.
func openRoot(ctx context.Context, dir string, say func(string, ...any)) (root, error) {
	r := root{filepath.Join(dir, "root-"+recipe())}
	if _, err := os.Stat(r.dir); err == nil {
		return r, nil
	}
	earlier, err := filepath.Glob(filepath.Join(dir, "root-*"))
	if err != nil {
		return r, err
	}
	for _, name := range earlier {
		if err := os.RemoveAll(name); err != nil {
			return r, err
		}
	}
	work, err := os.MkdirTemp(dir, "root-new")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(work)
	say("making the root file system of the machine of %d Debian packages and those that they depend on", len(packages))
	if err := makeRoot(ctx, work); err != nil {
		return r, fmt.Errorf("make the root file system: %w", err)
	}
	done := filepath.Join(work, "done")
	return r, os.Rename(done, r.dir)
}

// makeRoot makes the files of a root in the directory done below another one.
func makeRoot(ctx context.Context, work string) error {
	debs, tree, done := filepath.Join(work, "debs"), filepath.Join(work, "tree"), filepath.Join(work, "done")
	err := errors.Join(os.MkdirAll(filepath.Join(debs, "partial"), 0o755), os.Mkdir(tree, 0o755), os.Mkdir(done, 0o755),
		os.WriteFile(filepath.Join(work, "status"), nil, 0o644)) // no package is installed
	if err != nil {
		return err
	}
	download := append([]string{
		"-q", "-y", "--no-install-recommends", "--download-only", "-o", "Dir::State::status=" + filepath.Join(work, "status"),
		"-o", "Dir::State::extended_states=" + filepath.Join(work, "extended"), "-o", "Dir::Cache::archives=" + debs, "-o", "APT::Sandbox::User=root", "install",
	}, packages...)
	if err := run(ctx, "apt-get", "update", "-q"); err != nil {
		return err
	}
	if err := run(ctx, "apt-get", download...); err != nil {
		return err
	}
	if err := extract(ctx, debs, tree); err != nil {
		return err
	}
	version, err := kernelVersion(tree)
	if err != nil {
		return err
	}
	// The scripts of the packages are not run: what they would do is here.
	if err := errors.Join(writeGuest(tree), run(ctx, "chroot", tree, "/sbin/depmod", version), run(ctx, "chroot", tree, "/sbin/ldconfig")); err != nil {
		return err
	}
	r := root{done}
	if err := os.Rename(filepath.Join(tree, "boot", "vmlinuz-"+version), r.kernel()); err != nil {
		return err
	}
	initrd, err := makeInitrd(tree, version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.initrd(), initrd, 0o644); err != nil {
		return err
	}
	return makeDisk(ctx, tree, r.disk(), diskSize)
}

// extract extracts the packages into a tree with /bin, /sbin and the libraries in /usr, as Debian has it.
func extract(ctx context.Context, debs, tree string) error {
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		err := errors.Join(os.MkdirAll(filepath.Join(tree, "usr", dir), 0o755), os.Symlink(path.Join("usr", dir), filepath.Join(tree, dir)))
		if err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	args := []string{"-x", "--keep-directory-symlink", "-C", tree}
	for _, pattern := range excluded {
		args = append(args, "--exclude="+pattern)
	}
	for _, file := range files {
		unpack, write := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file), exec.CommandContext(ctx, "tar", args...)
		var output strings.Builder
		pipe, err := unpack.StdoutPipe()
		if err != nil {
			return err
		}
		write.Stdin, write.Stderr, unpack.Stderr = pipe, &output, &output
		if err := unpack.Start(); err != nil {
			return err
		}
		if err := errors.Join(write.Run(), unpack.Wait()); err != nil {
			return fmt.Errorf("extract %s: %w: %s", filepath.Base(file), err, output.String())
		}
	}
	return nil
}

func kernelVersion(tree string) (string, error) {
	found, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("want one kernel in the packages, found %v: %w", found, err)
	}
	return strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-"), nil
}

// makeInitrd returns an initramfs that mounts the root file system.
func makeInitrd(tree, version string) ([]byte, error) {
	modules := filepath.Join(tree, "usr/lib/modules", version)
	f, err := os.Open(filepath.Join(modules, "modules.dep"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	order, err := loadOrder(f, bootModules)
	if err != nil {
		return nil, err
	}
	busybox, err := os.ReadFile(filepath.Join(tree, "usr/bin/busybox"))
	if err != nil {
		return nil, err
	}
	var a lab.Archive
	for _, dir := range []string{"bin", "proc", "sys", "dev", "root", "modules"} {
		a.Add(dir, lab.CpioDir, nil)
	}
	a.Add("bin/busybox", lab.CpioFile, busybox)
	a.Add("init", lab.CpioFile, []byte(initrdScript))
	for i, name := range order {
		data, err := os.ReadFile(filepath.Join(modules, name))
		if err != nil {
			return nil, err
		}
		a.Add(fmt.Sprintf("modules/%02d-%s", i, path.Base(name)), lab.CpioText, data)
	}
	return a.End(), nil
}

// loadOrder returns the files of kernel modules and of those that they depend on, in the order in which they can be
// loaded, from a modules.dep. Modules that are not in it are built in.
func loadOrder(dep io.Reader, modules []string) (order []string, err error) {
	files, needs := map[string]string{}, map[string][]string{}
	scanner := bufio.NewScanner(dep)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		file, list, ok := strings.Cut(scanner.Text(), ":")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(path.Base(file), ".")
		files[strings.ReplaceAll(name, "-", "_")], needs[file] = file, strings.Fields(list)
	}
	var add func(file string)
	add = func(file string) {
		if slices.Contains(order, file) {
			return
		}
		for _, need := range slices.Backward(needs[file]) { // the last has to be loaded first
			add(need)
		}
		order = append(order, file)
	}
	for _, name := range modules {
		if file := files[name]; file != "" {
			add(file)
		}
	}
	return order, scanner.Err()
}

// makeDisk writes a file system with the files of a directory to a sparse file. size is as mke2fs has it: "8G".
func makeDisk(ctx context.Context, dir, file, size string) error {
	return run(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", dir, file, size)
}

// writeGuest writes the files that are not in a package.
func writeGuest(tree string) error {
	for name, text := range guestFiles() {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // a link
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			return err
		}
	}
	var err error
	for _, dir := range directories {
		err = errors.Join(err, os.MkdirAll(filepath.Join(tree, dir), 0o755))
	}
	for link, to := range links {
		if removeErr := os.Remove(filepath.Join(tree, link)); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		err = errors.Join(err, os.Symlink(to, filepath.Join(tree, link)))
	}
	return errors.Join(err, os.Chmod(filepath.Join(tree, "tmp"), 0o1777))
}

// run runs a command and returns its output with the error.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
