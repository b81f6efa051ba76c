-- The emulator runs PTX, so the kernel cache keeps it beside the cubin.
ALTER TABLE kernel ADD COLUMN ptx TEXT;
