package stores

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// setProcessLimits sets the OOM score and the open files limit of the process, if the
// Config permits it. Failures are logged, since pods run without them.
func setProcessLimits(b Base) {
	if !b.Config.Host.Manage {
		return
	}
	if !b.Config.Runtime.Processes { // plain processes would inherit the score
		err := SetOOMScore("/proc/self/oom_score_adj", *b.Configuration.OOMScoreAdj)
		switch {
		case err != nil && b.UserNamespace.Lenient():
			b.Logger.Info("OOM score not set, since the process is in a user namespace", "oomScoreAdj", *b.Configuration.OOMScoreAdj, "err", err)
		case err != nil:
			b.Logger.Warn("Failed to set OOM score; the kernel may kill the kubelet before pods under memory pressure", "oomScoreAdj", *b.Configuration.OOMScoreAdj, "err", err)
		}
	}
	err := allowFiles(uint64(b.Configuration.MaxOpenFiles))
	switch {
	case err != nil && b.UserNamespace.Lenient():
		b.Logger.Info("Limit of open files not raised, since the process is in a user namespace", "maxOpenFiles", b.Configuration.MaxOpenFiles, "err", err)
	case err != nil:
		b.Logger.Warn("Failed to raise the limit of open files", "maxOpenFiles", b.Configuration.MaxOpenFiles, "err", err)
	}
}

// SetOOMScore writes the score, if the kernel has any.
func SetOOMScore(file string, score int32) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(int(score)))
	return errors.Join(err, f.Close())
}
