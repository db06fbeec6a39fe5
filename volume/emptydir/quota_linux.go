//go:build !(mips || mipsle || mips64 || mips64le || ppc64 || ppc64le)

package emptydir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/fs.h, linux/dqblk_xfs.h and linux/quota.h; x/sys has none of them. The commands of XFS
// work on ext4 as well.
const (
	fsGetXattr = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr = 0x401c5820 // FS_IOC_FSSETXATTR

	xattrSize      = 28    // struct fsxattr
	xattrFlags     = 0     // u32 fsx_xflags
	xattrProject   = 12    // u32 fsx_projid
	projectInherit = 0x200 // FS_XFLAG_PROJINHERIT

	getProjectQuota = 0x5803<<8 | 2 // QCMD(Q_XGETQUOTA, PRJQUOTA)

	quotaSize   = 112 // struct fs_disk_quota
	quotaLimits = 8   // four u64: hard and soft limits of blocks and inodes
	quotaBlocks = 40  // u64 d_bcount, of 512 bytes
	quotaInodes = 48  // u64 d_icount
)

// projectQuotas are the project quotas of the file systems of this machine.
type projectQuotas struct {
	mu   sync.Mutex // held while an ID is selected and assigned
	next uint32
}

// NewProjectQuotas returns the project quotas of XFS and ext4 (mounted with prjquota, ext4 with the
// features project and quota). They require Linux 5.14 and CAP_SYS_ADMIN. The ID of a directory's
// project is stored in the directory. IDs are selected that the file system has no usage of, and that
// /etc/projects and /etc/projid do not contain. These files are not written.
func NewProjectQuotas() Quotas {
	return &projectQuotas{next: firstProject + rand.N[uint32](projectsTotal)} // two agents select different ones
}

// Assign implements Quotas.
func (q *projectQuotas) Assign(dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return fmt.Errorf("assign project quota: %w", err)
	}
	defer d.Close()
	if err := q.assign(d); err != nil {
		return fmt.Errorf("assign project quota to %s: %w", dir, err)
	}
	return nil
}

func (q *projectQuotas) assign(d *os.File) error {
	id, err := projectOf(d)
	if err != nil || id != 0 {
		return err
	}
	reserved := map[uint32]bool{}
	for column, file := range []string{"/etc/projects", "/etc/projid"} {
		if err := reservedProjects(file, column, reserved); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if id, err = freeProject(q.next, reserved, func(id uint32) (bool, error) {
		u, err := readQuota(d, id)
		return u != quota{}, err
	}); err != nil {
		return err
	}
	before, err := readXattr(d)
	if err != nil {
		return err
	}
	after := before
	after.setProject(id)
	if err := after.write(d); err != nil {
		return err
	}
	// The quota is checked once, since the file system may store IDs and not account for them.
	if u, err := readQuota(d, id); err != nil || u.inodes == 0 {
		return errors.Join(fmt.Errorf("the file system has no usage of the project: %w", errors.ErrUnsupported), err, before.write(d))
	}
	q.next = id + 1
	return nil
}

// reservedProjects adds the IDs of a file, which need not exist.
func reservedProjects(file string, column int, into map[uint32]bool) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := projectIDs(f, column, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Usage implements Quotas.
func (q *projectQuotas) Usage(dir string) (bytes, inodes uint64, err error) {
	d, err := openDir(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("read project quota: %w", err)
	}
	defer d.Close()
	id, err := projectOf(d)
	if err == nil && id == 0 {
		err = fmt.Errorf("no project: %w", errors.ErrUnsupported)
	}
	var u quota
	if err == nil {
		u, err = readQuota(d, id)
	}
	if err == nil && u.inodes == 0 { // accounting is disabled: the directory itself is an inode
		err = fmt.Errorf("no usage of project %d: %w", id, errors.ErrUnsupported)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read project quota of %s: %w", dir, err)
	}
	return u.bytes, u.inodes, nil
}

func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// projectOf returns the ID of the directory's own project; 0 if it has none, or that of the directory
// which contains it.
func projectOf(d *os.File) (uint32, error) {
	own, err := readXattr(d)
	if err != nil || !own.inherits() || own.project() < firstProject || own.project()-firstProject >= projectsTotal {
		return 0, err
	}
	fd, err := unix.Openat(int(d.Fd()), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: d.Name() + "/..", Err: err}
	}
	parent := os.NewFile(uintptr(fd), d.Name()+"/..")
	defer parent.Close()
	above, err := readXattr(parent)
	if err == nil && above.project() == own.project() {
		return 0, nil
	}
	if errors.Is(err, errors.ErrUnsupported) { // another file system
		err = nil
	}
	return own.project(), err
}

// An xattr is a struct fsxattr.
type xattr [xattrSize]byte

func readXattr(d *os.File) (x xattr, err error) {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), fsGetXattr, uintptr(unsafe.Pointer(&x))); errno != 0 {
		return x, unsupported("get the project", errno)
	}
	return x, nil
}

func (x *xattr) write(d *os.File) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), fsSetXattr, uintptr(unsafe.Pointer(x))); errno != 0 {
		return unsupported("set the project", errno)
	}
	return nil
}

func (x *xattr) project() uint32 { return binary.NativeEndian.Uint32(x[xattrProject:]) }

func (x *xattr) inherits() bool {
	return binary.NativeEndian.Uint32(x[xattrFlags:])&projectInherit != 0
}

// setProject sets the project, which new files below the directory inherit.
func (x *xattr) setProject(id uint32) {
	binary.NativeEndian.PutUint32(x[xattrFlags:], binary.NativeEndian.Uint32(x[xattrFlags:])|projectInherit)
	binary.NativeEndian.PutUint32(x[xattrProject:], id)
}

// A quota is the usage of a project. It is zero if the file system has neither files nor limits of it.
type quota struct {
	bytes, inodes uint64
	limited       bool
}

// readQuota returns the quota of a project in the file system of d.
func readQuota(d *os.File, id uint32) (quota, error) {
	var raw [quotaSize]byte
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, d.Fd(), getProjectQuota, uintptr(id), uintptr(unsafe.Pointer(&raw)), 0, 0)
	if errno == unix.ENOENT { // XFS has no record of it
		return quota{}, nil
	}
	if errno != 0 {
		return quota{}, unsupported("get the quota", errno)
	}
	u := quota{bytes: binary.NativeEndian.Uint64(raw[quotaBlocks:]) * 512, inodes: binary.NativeEndian.Uint64(raw[quotaInodes:])}
	for at := quotaLimits; at < quotaBlocks; at += 8 {
		u.limited = u.limited || binary.NativeEndian.Uint64(raw[at:]) != 0
	}
	return u, nil
}

// unsupported returns the error of a system call. It wraps errors.ErrUnsupported if the kernel or the
// file system has no project quotas, or they are disabled.
func unsupported(op string, errno unix.Errno) error {
	switch errno {
	case unix.ENOSYS, unix.ENOTTY, unix.EOPNOTSUPP, unix.EINVAL, unix.ESRCH:
		return fmt.Errorf("%s: %w: %w", op, errors.ErrUnsupported, errno)
	}
	return fmt.Errorf("%s: %w", op, errno)
}
