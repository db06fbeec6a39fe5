//go:build !linux

package main

import "errors"

// An openLock is an open lock file.
type openLock struct{}

func (l lockFile) open() (*openLock, error) { return nil, errors.ErrUnsupported }

func (o *openLock) try() (bool, error) { return false, errors.ErrUnsupported }
func (o *openLock) watch(func()) error { return errors.ErrUnsupported }
func (o *openLock) close()             {}
