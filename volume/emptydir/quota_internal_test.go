package emptydir

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreeProject(t *testing.T) {
	const last = firstProject + projectsTotal - 1
	used := func(ids ...uint32) func(uint32) (bool, error) {
		return func(id uint32) (bool, error) {
			for _, u := range ids {
				if u == id {
					return true, nil
				}
			}
			return false, nil
		}
	}
	for name, c := range map[string]struct {
		from     uint32
		reserved map[uint32]bool
		used     func(uint32) (bool, error)
		want     uint32
	}{
		"the first":      {firstProject, nil, used(), firstProject},
		"used":           {firstProject, nil, used(firstProject, firstProject+1), firstProject + 2},
		"reserved":       {firstProject, map[uint32]bool{firstProject: true}, used(firstProject + 1), firstProject + 2},
		"around the end": {last, nil, used(last), firstProject},
		"past the end":   {last + 1, nil, used(), firstProject},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := freeProject(c.from, c.reserved, c.used)
			require.NoError(t, err)
			assert.Equal(t, c.want, id)
		})
	}
	_, err := freeProject(firstProject, nil, func(uint32) (bool, error) { return true, nil })
	require.EqualError(t, err, "no project ID from 1048577 to 2097152 is free")
	_, err = freeProject(firstProject, nil, func(uint32) (bool, error) { return false, errors.New("off") })
	require.EqualError(t, err, "off")
}

func TestReservedProjects(t *testing.T) {
	ids := map[uint32]bool{}
	require.NoError(t, projectIDs(strings.NewReader("# comment\n1048577:/var/lib/a\nx:/y\n 7 :/z\n99999999999:/q\nnone\n"), 0, ids))
	require.NoError(t, projectIDs(strings.NewReader("volume1048578:1048578\na:b\n"), 1, ids))
	assert.Equal(t, map[uint32]bool{1048577: true, 7: true, 1048578: true}, ids)
	require.Error(t, projectIDs(strings.NewReader(strings.Repeat("x", 2*maxProjectsFile)), 0, ids), "a line without an end")
}
