package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// settle sets what the kernel knows of the agent itself: a machine without memory ends
// others first, and there are files enough. An agent that somebody tries is left as it
// is, and one that may not is told of in a warning.
func (a *assembly) settle() error {
	k := a.opts.kubelet
	score := deref(k.OOMScoreAdj)
	if score < -1000 || score > 1000 {
		return fmt.Errorf("oomScoreAdj is %d: want -1000 to 1000", score)
	}
	if k.MaxOpenFiles < 0 {
		return fmt.Errorf("maxOpenFiles is negative: %d", k.MaxOpenFiles)
	}
	if !a.opts.configured() {
		return nil
	}
	// Plain processes would have the agent's score as well.
	if a.opts.runtime != "process" {
		if err := setOOMScore("/proc/self/oom_score_adj", score); err != nil {
			a.logger.Warn("the kernel may end the agent for memory before others", "oomScoreAdj", score, "err", err)
		}
	}
	if err := allowFiles(uint64(k.MaxOpenFiles)); err != nil {
		a.logger.Warn("the agent may open less files than it should", "maxOpenFiles", k.MaxOpenFiles, "err", err)
	}
	return nil
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
