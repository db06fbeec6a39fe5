package kubelet

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
)

// setProcessLimits sets the OOM score and the open files limit of the process, if the
// Config permits it. Failures are logged, since pods run without them.
func setProcessLimits(b base) {
	if !b.cfg.Host.Manage {
		return
	}
	if !b.cfg.Runtime.Processes { // plain processes would inherit the score
		err := setOOMScore("/proc/self/oom_score_adj", *b.k.OOMScoreAdj)
		switch {
		case err != nil && b.userNamespace.lenient():
			b.logger.Info("OOM score not set, since the process is in a user namespace", "oomScoreAdj", *b.k.OOMScoreAdj, "err", err)
		case err != nil:
			b.logger.Warn("Failed to set OOM score; the kernel may kill the kubelet before pods under memory pressure", "oomScoreAdj", *b.k.OOMScoreAdj, "err", err)
		}
	}
	err := allowFiles(uint64(b.k.MaxOpenFiles))
	switch {
	case err != nil && b.userNamespace.lenient():
		b.logger.Info("Limit of open files not raised, since the process is in a user namespace", "maxOpenFiles", b.k.MaxOpenFiles, "err", err)
	case err != nil:
		b.logger.Warn("Failed to raise the limit of open files", "maxOpenFiles", b.k.MaxOpenFiles, "err", err)
	}
}

// setOOMScore writes the score, if the kernel has any.
func setOOMScore(file string, score int32) error {
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
