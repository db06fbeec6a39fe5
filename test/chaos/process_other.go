//go:build !linux

package chaos

import "errors"

// Package lab refuses to run on this system before these are called.

var errNotLinux = errors.New("not on this system")

func processes(string) []process                       { return nil }
func started(int) string                               { return "" }
func shims(string) map[string]int                      { return nil }
func killed(int) error                                 { return errNotLinux }
func stopped(int) error                                { return errNotLinux }
func resumed(int) error                                { return errNotLinux }
func ignoreGone(err error) error                       { return err }
func smallDisk(string, int) error                      { return errNotLinux }
func unmountAll(string) error                          { return errNotLinux }
func mounted() ([]string, error)                       { return nil, errNotLinux }
func removeGroups(string) error                        { return errNotLinux }
func groupsNamed(string, func(string) bool) []groupDir { return nil }
func (groupDir) remove() error                         { return errNotLinux }
