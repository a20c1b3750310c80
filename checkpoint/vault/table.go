package vault

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// compression of the blocks of a table. With a million edges and 200,000 IRIs
// Snappy, Zstd and MinLZ give 11.3, 9.7 and 10.7 bytes an edge, written in 114,
// 220 and 97 ns and read in 22, 53 and 65 ns, all in pure Go; 23 bytes without.
// Reading is what recovery waits for.
var compression = sstable.SnappyCompression

// TableWriter writes one sorted table, to be let in by [Vault.Ingest]. Memory
// is bounded by a block and the index. It is for one goroutine.
type TableWriter struct {
	path string
	w    *sstable.Writer
}

// Create makes the file at path on fsys and begins a table in it.
func Create(fsys vfs.FS, path string) (*TableWriter, error) {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("create a table: %w", err)
	}
	o := tables()
	o.EnsureDefaults()
	wo := o.MakeWriterOptions(len(o.Levels)-1, Format.MaxTableFormat())
	// Value blocks would be held in memory until the end.
	wo.DisableValueBlocks = true
	t := &TableWriter{path: path}
	err = guard(func() error {
		t.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), wo)
		return nil
	})
	if err != nil {
		return nil, explain("create", path, err)
	}
	return t, nil
}

// Path gives the path of the file.
func (t *TableWriter) Path() string { return t.path }

// Add writes one pair. Keys ascend.
func (t *TableWriter) Add(key, value []byte) error {
	return explain("write", t.path, guard(func() error { return t.w.Set(key, value) }))
}

// Bytes estimates the size of the file so far.
func (t *TableWriter) Bytes() int64 { return int64(t.w.Raw().EstimatedSize()) }

// Finish completes the table, syncs the file and closes it. It is called once,
// also to give a table up; the caller removes the file then.
func (t *TableWriter) Finish() error {
	return explain("write", t.path, guard(t.w.Close))
}
