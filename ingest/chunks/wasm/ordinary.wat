;; Finds the ends of CSV records 64 bytes at a time, as bits of a word: five times as fast as looking at each byte.
;; Only for ordinary CSV, which the words below tell from any other; records.ts defines what a record is and reads
;; the rest. Built into programs.ts by `npm run wasm`.
(module
  ;; The bytes to look at, from 0 on.
  (memory (export "memory") 4)

  ;; What is found is told in bytes from where the scan began.
  (global $last (export "last") (mut i32) (i32.const -1))
  (global $records (export "records") (mut i32) (i32.const 0))
  ;; Line ends up to the last record's own, and those of them that end a record.
  (global $lines (export "lines") (mut i32) (i32.const 0))
  (global $ends (export "ends") (mut i32) (i32.const 0))
  ;; -1 within quotes, else 0.
  (global $quoted (export "quoted") (mut i64) (i64.const 0))
  ;; 1 while cells are what is between delimiters, with or without quotes around it, and lines end with \n or \r\n.
  (global $plain (export "plain") (mut i32) (i32.const 1))

  (global $delimiter (mut i32) (i32.const 0))
  (global $maxQuoted (mut i32) (i32.const 0))
  ;; Bytes and line ends so far, and where the latest quoted cell begins.
  (global $position (mut i32) (i32.const 0))
  (global $allLines (mut i32) (i32.const 0))
  (global $opened (mut i32) (i32.const 0))
  ;; Whether the byte before is the end of a record, of a cell, of quotes, a carriage return: bit 0.
  (global $afterRecord (mut i64) (i64.const 1))
  (global $afterCell (mut i64) (i64.const 1))
  (global $afterQuotes (mut i64) (i64.const 0))
  (global $afterReturn (mut i64) (i64.const 0))

  (func (export "begin") (param $delimiter i32) (param $maxQuoted i32)
    (global.set $delimiter (local.get $delimiter))
    (global.set $maxQuoted (local.get $maxQuoted))
    (global.set $last (i32.const -1))
    (global.set $records (i32.const 0))
    (global.set $lines (i32.const 0))
    (global.set $ends (i32.const 0))
    (global.set $quoted (i64.const 0))
    (global.set $position (i32.const 0))
    (global.set $allLines (i32.const 0))
    (global.set $opened (i32.const 0))
    (global.set $afterRecord (i64.const 1))
    (global.set $afterCell (i64.const 1))
    (global.set $afterQuotes (i64.const 0))
    (global.set $afterReturn (i64.const 0))
    (global.set $plain (i32.const 1)))

  ;; Which of the 64 bytes are this one.
  (func $bytes (param $at i32) (param $byte v128) (result i64)
    (i64.or
      (i64.or
        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.load (local.get $at)) (local.get $byte))))
        (i64.shl
          (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.load offset=16 (local.get $at)) (local.get $byte))))
          (i64.const 16)))
      (i64.or
        (i64.shl
          (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.load offset=32 (local.get $at)) (local.get $byte))))
          (i64.const 32))
        (i64.shl
          (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.load offset=48 (local.get $at)) (local.get $byte))))
          (i64.const 48)))))

  ;; Looks at the next bytes: a multiple of 64, or the last ones, with zeros behind them up to one. 0 if they are not
  ;; ordinary: then nothing that was found holds.
  (func (export "scan") (param $length i32) (result i32)
    (local $at i32)
    (local $quotes i64) (local $newlines i64) (local $inside i64) (local $recordEnds i64) (local $openings i64)
    (local $cellBegins i64) (local $afterRecordEnds i64) (local $byte i32) (local $top i64)
    (local $outside i64) (local $delimiters i64) (local $closings i64) (local $returns i64) (local $looked i64)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $length)))
        (local.set $quotes (call $bytes (local.get $at) (i8x16.splat (i32.const 34))))
        (local.set $newlines (call $bytes (local.get $at) (i8x16.splat (i32.const 10))))

        ;; From an opening quote to the byte before the closing one: the parity of the quotes so far.
        (local.set $inside (i64.xor (local.get $quotes) (i64.shl (local.get $quotes) (i64.const 1))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 2))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 4))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 8))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 16))))
        (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 32))))
        (local.set $inside (i64.xor (local.get $inside) (global.get $quoted)))
        (local.set $outside (i64.xor (local.get $inside) (i64.const -1)))
        (local.set $recordEnds (i64.and (local.get $newlines) (local.get $outside)))
        (local.set $delimiters (call $bytes (local.get $at) (i8x16.splat (global.get $delimiter))))
        (local.set $returns (call $bytes (local.get $at) (i8x16.splat (i32.const 13))))
        (local.set $closings (i64.and (local.get $quotes) (local.get $outside)))

        ;; Quotes open at the beginning of a cell, or right behind those that close: "" is a quote in a quoted cell.
        (local.set $openings (i64.and (local.get $quotes) (local.get $inside)))
        (if (i64.ne (local.get $openings) (i64.const 0))
          (then
            (local.set $cellBegins
              (i64.and
                (local.get $openings)
                (i64.or
                  (global.get $afterCell)
                  (i64.shl
                    (i64.or
                      (local.get $recordEnds)
                      (i64.and (local.get $delimiters) (local.get $outside)))
                    (i64.const 1)))))
            (if (i64.ne
                  (i64.const 0)
                  (i64.and
                    (i64.xor (local.get $openings) (local.get $cellBegins))
                    (i64.xor
                      (i64.const -1)
                      (i64.or
                        (global.get $afterQuotes)
                        (i64.shl (local.get $closings) (i64.const 1))))))
              (then (return (i32.const 0))))))

        ;; Not plain: a quote, delimiter or line end within quotes, something behind them, a stray carriage return.
        (local.set $looked (i64.const -1))
        (if (i32.lt_u (i32.sub (local.get $length) (local.get $at)) (i32.const 64))
          (then
            (local.set $looked
              (i64.sub
                (i64.shl
                  (i64.const 1)
                  (i64.extend_i32_u (i32.sub (local.get $length) (local.get $at))))
                (i64.const 1)))))
        (if (i64.ne
              (i64.const 0)
              (i64.or
                (i64.or
                  (i64.xor (local.get $openings) (local.get $cellBegins))
                  (i64.and (local.get $inside) (i64.or (local.get $delimiters) (local.get $newlines))))
                (i64.and
                  (local.get $looked)
                  (i64.or
                    (i64.and
                      (i64.or (global.get $afterQuotes) (i64.shl (local.get $closings) (i64.const 1)))
                      (i64.xor
                        (i64.const -1)
                        (i64.or
                          (local.get $delimiters)
                          (i64.or (local.get $newlines) (local.get $returns)))))
                    (i64.and
                      (i64.or (global.get $afterReturn) (i64.shl (local.get $returns) (i64.const 1)))
                      (i64.xor (i64.const -1) (local.get $newlines)))))))
          (then (global.set $plain (i32.const 0))))

        (if (i32.and
              (i32.wrap_i64 (global.get $quoted))
              (i32.gt_s (i32.sub (global.get $position) (global.get $opened)) (global.get $maxQuoted)))
          (then (return (i32.const 0))))
        (if (i64.ne (local.get $cellBegins) (i64.const 0))
          (then
            (global.set $opened
              (i32.add
                (global.get $position)
                (i32.wrap_i64 (i64.sub (i64.const 63) (i64.clz (local.get $cellBegins))))))
            (local.set $cellBegins (i64.const 0))))

        ;; A line of carriage returns is blank.
        (local.set $afterRecordEnds
          (i64.or (global.get $afterRecord) (i64.shl (local.get $recordEnds) (i64.const 1))))
        (if (i64.ne (i64.const 0) (i64.and (local.get $afterRecordEnds) (local.get $returns)))
          (then (return (i32.const 0))))

        (if (i64.ne (local.get $recordEnds) (i64.const 0))
          (then
            (global.set $ends
              (i32.add (global.get $ends) (i32.wrap_i64 (i64.popcnt (local.get $recordEnds)))))
            ;; A blank line is no record.
            (global.set $records
              (i32.add
                (global.get $records)
                (i32.wrap_i64
                  (i64.popcnt
                    (i64.and
                      (local.get $recordEnds)
                      (i64.xor (local.get $afterRecordEnds) (i64.const -1)))))))
            (local.set $top (i64.sub (i64.const 63) (i64.clz (local.get $recordEnds))))
            (global.set $last (i32.add (global.get $position) (i32.wrap_i64 (local.get $top))))
            (global.set $lines
              (i32.add
                (global.get $allLines)
                (i32.wrap_i64
                  (i64.popcnt
                    (i64.and
                      (local.get $newlines)
                      (i64.sub (i64.shl (i64.const 2) (local.get $top)) (i64.const 1)))))))))

        (local.set $byte (i32.load8_u offset=63 (local.get $at)))
        (global.set $afterRecord (i64.shr_u (local.get $recordEnds) (i64.const 63)))
        (global.set $afterQuotes (i64.shr_u (local.get $closings) (i64.const 63)))
        (global.set $afterReturn (i64.shr_u (local.get $returns) (i64.const 63)))
        (global.set $quoted (i64.shr_s (local.get $inside) (i64.const 63)))
        (global.set $afterCell
          (i64.or
            (global.get $afterRecord)
            (i64.and
              (i64.extend_i32_u (i32.eq (local.get $byte) (global.get $delimiter)))
              (i64.xor (global.get $quoted) (i64.const -1)))))
        (global.set $allLines
          (i32.add (global.get $allLines) (i32.wrap_i64 (i64.popcnt (local.get $newlines)))))
        (global.set $position (i32.add (global.get $position) (i32.const 64)))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $next)))
    (i32.const 1)))
