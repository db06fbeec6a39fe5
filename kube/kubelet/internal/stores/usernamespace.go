package stores

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/node"
)

// userNamespaceGate is the feature gate with which a kubelet in a user namespace ignores
// errors of operations on the machine.
const userNamespaceGate = "KubeletInUserNamespace"

// A UserNamespace decides whether errors of operations that the kernel permits only in the
// initial user namespace prevent the start. The zero value is the initial one.
type UserNamespace struct {
	Inside bool // the process is in another one
	Gate   bool // userNamespaceGate is enabled
}

func NewUserNamespace(k *kubeletconfig.KubeletConfiguration) UserNamespace {
	inside, _ := node.InUserNamespace(os.DirFS("/")) // false if that cannot be read, as with the kubelet
	return UserNamespace{Inside: inside, Gate: config.Enabled(k, userNamespaceGate)}
}

// Lenient reports whether such errors are logged instead of returned.
func (u UserNamespace) Lenient() bool { return u.Inside && u.Gate }

// Explain adds to an error that the process is in a user namespace, if it is, and the gate.
func (u UserNamespace) Explain(err error) error {
	if !u.Inside {
		return err
	}
	return fmt.Errorf("%w: the process is in a user namespace; the feature gate %s ignores this error", err, userNamespaceGate)
}

// KernelLog returns open, or nil in a user namespace in which open returns an error.
func (u UserNamespace) KernelLog(open func() (io.ReadCloser, error), logger *slog.Logger) (func() (io.ReadCloser, error), error) {
	if !u.Inside {
		return open, nil // the watcher logs errors
	}
	log, err := open()
	switch {
	case err == nil:
		return open, log.Close()
	case u.Gate:
		logger.Info("Kernel log not read, since the process is in a user namespace; OOM kills are detected by the cgroups of pods, if they have any", "err", err)
		return nil, nil
	}
	return nil, u.Explain(fmt.Errorf("watch for out-of-memory kills: %w", err))
}

// IsDenied reports whether the kernel denied an operation.
func IsDenied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, cgroups.ErrReadOnly)
}
