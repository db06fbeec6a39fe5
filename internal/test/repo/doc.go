// Package repo has the tests of the repository as a whole: imports between modules,
// links, documentation, and rules for source files.
package repo
